from accessportal.commands.authz import grant_approval as Command
