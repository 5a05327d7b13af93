from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Any

from django.core.management.base import CommandParser

from accessportal.commands.directory import ChangeCommand
from accessportal.directory import operations
from accessportal.directory.states import Changed
from accessportal.kernel.actors import Actor


class Command(ChangeCommand):
    help = "Create a group below another: the one that its path names, or --parent. For admins of the group above and of the path's."
    example = "create_group /engineering/payments --name Payments --as olga@example.com"

    def add_arguments(self, parser: CommandParser) -> None:
        super().add_arguments(parser)
        parser.add_argument("group_id", metavar="ID", help="a path like /engineering/payments; it is fixed for life")
        parser.add_argument("--name", required=True)
        parser.add_argument("--description", default="", metavar="TEXT")
        parser.add_argument("--parent", metavar="ID", help="the group above (default: the leading part of the path)")

    def change(self, options: Mapping[str, Any], actor: Actor, now: datetime) -> tuple[str, Changed[Any]]:
        changed = operations.create_group(
            group_id=options["group_id"],
            name=options["name"],
            description=options["description"],
            parent_id=options["parent"],
            actor=actor,
            now=now,
        )
        return f"{changed.record.group_id} was created below {changed.record.parent_id}.", changed
