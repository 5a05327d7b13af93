from accessportal.commands.audit import verify_audit as Command
