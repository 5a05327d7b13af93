from accessportal.commands.requests import request_access as Command
