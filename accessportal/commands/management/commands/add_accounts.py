from accessportal.commands.leases import add_accounts as Command
