from accessportal.commands.upkeep import list_accounts as Command
