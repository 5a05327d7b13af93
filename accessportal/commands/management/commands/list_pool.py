from accessportal.commands.leases import list_pool as Command
