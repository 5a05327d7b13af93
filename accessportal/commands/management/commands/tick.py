from accessportal.commands.upkeep import tick as Command
