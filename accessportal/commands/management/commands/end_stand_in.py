from accessportal.commands.stand_ins import end_stand_in as Command
