from accessportal.commands.directory import found_directory as Command
