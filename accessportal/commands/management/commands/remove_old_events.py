from accessportal.commands.evidence import remove_old_events as Command
