from accessportal.commands.requests import show_request as Command
