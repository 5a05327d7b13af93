from accessportal.commands.comparing import compare_subjects as Command
