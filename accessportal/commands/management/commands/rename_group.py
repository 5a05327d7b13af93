from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Any

from django.core.management.base import CommandParser

from accessportal.commands.directory import ChangeCommand, group_named
from accessportal.directory import operations
from accessportal.directory.states import Changed
from accessportal.kernel.actors import Actor


class Command(ChangeCommand):
    help = "Give a group another name or description. Its path is fixed for life. For its admins and those of a group above."
    example = 'rename_group /engineering/payments --name "Payments and payouts" --as olga@example.com'

    def add_arguments(self, parser: CommandParser) -> None:
        super().add_arguments(parser)
        parser.add_argument("group_id", metavar="ID", help="the group's path")
        parser.add_argument("--name", required=True)
        parser.add_argument("--description", metavar="TEXT", help="without it the description stays")

    def change(self, options: Mapping[str, Any], actor: Actor, now: datetime) -> tuple[str, Changed[Any]]:
        description = options["description"]
        if description is None:
            description = group_named(options["group_id"]).description
        changed = operations.rename_group(group_id=options["group_id"], name=options["name"], description=description, actor=actor, now=now)
        return f"{changed.record.group_id} is called {changed.record.name} now.", changed
