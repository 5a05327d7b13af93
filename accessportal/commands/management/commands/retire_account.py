from accessportal.commands.leases import retire_account as Command
