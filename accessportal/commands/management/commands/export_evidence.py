from accessportal.commands.evidence import export_evidence as Command
