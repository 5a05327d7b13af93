from accessportal.commands.directory import enable_user as Command
