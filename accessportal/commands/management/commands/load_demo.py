from accessportal.commands.demo import load_demo as Command
