from accessportal.commands.authz import remove_relationship as Command
