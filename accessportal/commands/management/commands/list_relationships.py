from accessportal.commands.authz import list_relationships as Command
