from accessportal.commands.directory import show_group as Command
