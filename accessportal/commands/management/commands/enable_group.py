from accessportal.commands.directory import enable_group as Command
