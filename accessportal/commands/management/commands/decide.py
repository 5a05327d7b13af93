from accessportal.commands.requests import decide as Command
