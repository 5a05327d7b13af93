from accessportal.commands.history import what_had as Command
