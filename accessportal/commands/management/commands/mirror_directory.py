from accessportal.commands.comparing import mirror_directory as Command
