from accessportal.commands.audit import after_restore as Command
