from accessportal.commands.importing import import_people as Command
