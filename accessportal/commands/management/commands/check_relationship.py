from accessportal.commands.authz import check_relationship as Command
