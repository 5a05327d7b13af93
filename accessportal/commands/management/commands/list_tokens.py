from accessportal.commands.tokens import list_tokens as Command
