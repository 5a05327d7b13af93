from accessportal.commands.authz import check_approval as Command
