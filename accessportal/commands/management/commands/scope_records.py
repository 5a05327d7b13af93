from accessportal.commands.authz import scope_records as Command
