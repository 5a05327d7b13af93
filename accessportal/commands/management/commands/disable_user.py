from __future__ import annotations

from accessportal.access_requests.queries import ACCESS_ENDS
from accessportal.commands.directory import PersonStateCommand
from accessportal.directory.states import State


class Command(PersonStateCommand):
    help = f"Disable a person: in no group, without any role, signed out at the next request. {ACCESS_ENDS} For admins of the root."
    example = "disable_user alice@example.com --as olga@example.com"
    state = State.DISABLED
