from accessportal.commands.directory import move_group as Command
