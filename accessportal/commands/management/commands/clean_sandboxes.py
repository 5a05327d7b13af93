from accessportal.commands.sandboxes import clean_sandboxes as Command
