from accessportal.commands.directory import erase_person as Command
