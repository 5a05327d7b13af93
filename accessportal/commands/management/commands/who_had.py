from accessportal.commands.history import who_had as Command
