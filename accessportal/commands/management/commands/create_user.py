from accessportal.commands.directory import create_user as Command
