from accessportal.commands.requests import list_requests as Command
