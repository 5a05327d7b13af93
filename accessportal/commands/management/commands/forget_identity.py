from accessportal.commands.directory import forget_identity as Command
