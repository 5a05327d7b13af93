from accessportal.commands.rules import load_rules as Command
