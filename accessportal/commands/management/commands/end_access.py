from accessportal.commands.requests import end_access as Command
