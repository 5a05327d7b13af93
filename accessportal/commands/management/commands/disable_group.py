from accessportal.commands.directory import disable_group as Command
