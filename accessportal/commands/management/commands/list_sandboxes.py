from accessportal.commands.sandboxes import list_sandboxes as Command
