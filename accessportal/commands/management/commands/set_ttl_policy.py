from accessportal.commands.authz import set_ttl_policy as Command
