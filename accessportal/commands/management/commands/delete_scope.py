from accessportal.commands.authz import delete_scope as Command
