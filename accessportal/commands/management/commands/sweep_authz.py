from accessportal.commands.authz import sweep_authz as Command
