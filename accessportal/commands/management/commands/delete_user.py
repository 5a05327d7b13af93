from accessportal.commands.directory import delete_user as Command
