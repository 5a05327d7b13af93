from accessportal.commands.directory import list_groups as Command
