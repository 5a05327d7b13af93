from accessportal.commands.history import rebuild_history as Command
