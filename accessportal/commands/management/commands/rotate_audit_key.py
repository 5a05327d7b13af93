from accessportal.commands.audit import rotate_audit_key as Command
