from __future__ import annotations

from accessportal.commands.directory import PersonStateCommand
from accessportal.directory.states import State


class Command(PersonStateCommand):
    help = "Enable a person who was disabled: their memberships count again. For admins of the root."
    example = "enable_user alice@example.com --as olga@example.com"
    state = State.ENABLED
