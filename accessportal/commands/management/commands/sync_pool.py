from accessportal.commands.leases import sync_pool as Command
