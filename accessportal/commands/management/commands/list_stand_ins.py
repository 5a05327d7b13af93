from accessportal.commands.stand_ins import list_stand_ins as Command
