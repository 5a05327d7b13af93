from accessportal.commands.evidence import verify_evidence as Command
