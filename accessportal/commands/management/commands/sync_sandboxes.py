from accessportal.commands.sandboxes import sync_sandboxes as Command
