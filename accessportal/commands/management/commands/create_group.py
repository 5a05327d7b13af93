from accessportal.commands.directory import create_group as Command
