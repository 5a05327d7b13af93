from accessportal.commands.directory import rename_user as Command
