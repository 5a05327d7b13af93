from accessportal.commands.directory import delete_group as Command
