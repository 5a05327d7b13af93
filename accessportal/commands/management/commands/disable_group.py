from __future__ import annotations

from accessportal.access_requests.queries import ACCESS_OF_GROUP_ENDS
from accessportal.commands.directory import GroupStateCommand
from accessportal.directory.states import State


class Command(GroupStateCommand):
    help = (
        f"Disable a group: nobody is in it, and its memberships give nothing, until it is enabled again. {ACCESS_OF_GROUP_ENDS} "
        "For its admins."
    )
    example = "disable_group /engineering/payments --as olga@example.com"
    state = State.DISABLED
