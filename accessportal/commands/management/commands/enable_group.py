from __future__ import annotations

from accessportal.commands.directory import GroupStateCommand
from accessportal.directory.states import State


class Command(GroupStateCommand):
    help = "Enable a group that was disabled: its memberships count again. For its admins."
    example = "enable_group /engineering/payments --as olga@example.com"
    state = State.ENABLED
