from accessportal.commands.leases import unfreeze_lease as Command
