from accessportal.commands.directory import disable_user as Command
