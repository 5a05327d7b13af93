from accessportal.commands.upkeep import create_tables as Command
