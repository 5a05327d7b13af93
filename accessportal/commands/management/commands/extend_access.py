from accessportal.commands.requests import extend_access as Command
