from accessportal.commands.directory import leave_group as Command
