from accessportal.commands.authz import revoke_approval as Command
