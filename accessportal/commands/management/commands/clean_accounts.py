from accessportal.commands.leases import clean_accounts as Command
