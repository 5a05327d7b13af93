from accessportal.commands.requests import explain_rule as Command
