from accessportal.commands.leases import show_account as Command
