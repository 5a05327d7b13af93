from accessportal.commands.directory import show_user as Command
