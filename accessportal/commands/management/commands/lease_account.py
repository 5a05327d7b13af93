from accessportal.commands.leases import lease_account as Command
