from accessportal.commands.leases import freeze_lease as Command
