from accessportal.commands.directory import rename_group as Command
