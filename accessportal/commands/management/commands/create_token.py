from accessportal.commands.tokens import create_token as Command
