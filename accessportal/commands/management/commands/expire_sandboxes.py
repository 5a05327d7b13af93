from accessportal.commands.sandboxes import expire_sandboxes as Command
