from accessportal.commands.sandboxes import allocate_sandbox as Command
