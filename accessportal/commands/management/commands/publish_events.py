from accessportal.commands.upkeep import publish_events as Command
