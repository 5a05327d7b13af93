from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Any

from django.core.management.base import CommandParser

from accessportal.access_requests.queries import ACCESS_ENDS
from accessportal.commands.directory import ChangeCommand
from accessportal.directory import operations
from accessportal.directory.states import Changed
from accessportal.kernel.actors import Actor


class Command(ChangeCommand):
    help = f"Delete a person with all their memberships. {ACCESS_ENDS} For admins of the root."
    example = "delete_user alice@example.com --as olga@example.com"

    def add_arguments(self, parser: CommandParser) -> None:
        super().add_arguments(parser)
        parser.add_argument("email", metavar="EMAIL")

    def change(self, options: Mapping[str, Any], actor: Actor, now: datetime) -> tuple[str, Changed[Any]]:
        changed = operations.delete_person(email=options["email"], actor=actor, now=now)
        return f"{options['email']} was deleted. {ACCESS_ENDS}", changed
