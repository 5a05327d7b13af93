from accessportal.commands.authz import add_relationship as Command
