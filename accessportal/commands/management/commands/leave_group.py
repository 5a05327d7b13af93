from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Any

from django.core.management.base import CommandParser

from accessportal.commands.directory import ChangeCommand
from accessportal.directory import operations, queries
from accessportal.directory.states import Changed
from accessportal.kernel.actors import Actor


class Command(ChangeCommand):
    help = (
        "Leave a group that somebody else put you into, without asking its admins. What requests give there ends with the request. "
        "Where an admin of the root or the portal put you, ask an admin of the root."
    )
    example = "leave_group /engineering/payments --as alice@example.com"

    def add_arguments(self, parser: CommandParser) -> None:
        super().add_arguments(parser)
        parser.add_argument("group_id", metavar="GROUP", help="the group's path")

    def change(self, options: Mapping[str, Any], actor: Actor, now: datetime) -> tuple[str, Changed[Any]]:
        changed = operations.leave_group(group_id=options["group_id"], actor=actor, now=now)
        stays = queries.role_by_requests(email=actor.name, group_id=options["group_id"], now=now)
        more = f" By a request you stay in it, as {stays.value}, until its end." if stays is not None else ""
        return f"You have left {options['group_id']}.{more}", changed
