from accessportal.commands.directory import list_users as Command
