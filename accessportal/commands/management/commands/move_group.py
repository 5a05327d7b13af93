from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Any

from django.core.management.base import CommandParser

from accessportal.access_requests.queries import ACCESS_OF_GROUP_ENDS
from accessportal.commands.directory import ChangeCommand
from accessportal.directory import operations
from accessportal.directory.states import Changed
from accessportal.kernel.actors import Actor


class Command(ChangeCommand):
    help = (
        "Put a group, with everything below it, under another one. Its path stays. "
        f"{ACCESS_OF_GROUP_ENDS} For people who are admin of both groups above."
    )
    example = "move_group /engineering/payments --parent /finance --as olga@example.com"

    def add_arguments(self, parser: CommandParser) -> None:
        super().add_arguments(parser)
        parser.add_argument("group_id", metavar="ID", help="the group's path")
        parser.add_argument("--parent", required=True, metavar="ID", help="the new group above")

    def change(self, options: Mapping[str, Any], actor: Actor, now: datetime) -> tuple[str, Changed[Any]]:
        changed = operations.move_group(group_id=options["group_id"], parent_id=options["parent"], actor=actor, now=now)
        return f"{changed.record.group_id} is below {changed.record.parent_id} now.", changed
