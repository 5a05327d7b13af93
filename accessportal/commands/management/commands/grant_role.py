from accessportal.commands.directory import grant_role as Command
