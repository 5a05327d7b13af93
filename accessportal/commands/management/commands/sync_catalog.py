from accessportal.commands.upkeep import sync_catalog as Command
