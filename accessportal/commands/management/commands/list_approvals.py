from accessportal.commands.authz import list_approvals as Command
