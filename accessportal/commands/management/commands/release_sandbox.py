from accessportal.commands.sandboxes import release_sandbox as Command
