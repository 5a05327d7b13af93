from accessportal.commands.leases import read_spend as Command
