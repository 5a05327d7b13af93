from accessportal.commands.demo import runportal as Command
