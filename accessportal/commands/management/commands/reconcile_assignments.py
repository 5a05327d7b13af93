from accessportal.commands.comparing import reconcile_assignments as Command
