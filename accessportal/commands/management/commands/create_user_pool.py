from accessportal.commands.comparing import create_user_pool as Command
