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
    help = "Give a person another name. Their address is fixed for life. For admins of the root."
    example = 'rename_user alice@example.com --name "Alice Baker" --as olga@example.com'

    def add_arguments(self, parser: CommandParser) -> None:
        super().add_arguments(parser)
        parser.add_argument("email", metavar="EMAIL")
        parser.add_argument("--name", required=True)

    def change(self, options: Mapping[str, Any], actor: Actor, now: datetime) -> tuple[str, Changed[Any]]:
        changed = operations.rename_person(email=options["email"], name=options["name"], actor=actor, now=now)
        return f"{changed.record.email} is called {changed.record.name} now.", changed
