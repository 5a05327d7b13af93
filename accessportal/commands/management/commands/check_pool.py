from accessportal.commands.leases import check_pool as Command
