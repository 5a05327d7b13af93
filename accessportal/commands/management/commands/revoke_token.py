from accessportal.commands.tokens import revoke_token as Command
