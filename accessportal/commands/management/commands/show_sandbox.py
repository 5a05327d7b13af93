from accessportal.commands.sandboxes import show_sandbox as Command
