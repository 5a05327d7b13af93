from accessportal.commands.evidence import make_evidence_key as Command
