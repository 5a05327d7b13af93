from accessportal.commands.sandboxes import verify_sandboxes as Command
