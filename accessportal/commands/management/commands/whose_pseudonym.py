from accessportal.commands.evidence import whose_pseudonym as Command
