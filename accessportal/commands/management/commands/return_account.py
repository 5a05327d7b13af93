from accessportal.commands.leases import return_account as Command
