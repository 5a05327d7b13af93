from accessportal.commands.directory import revoke_role as Command
