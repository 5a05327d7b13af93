from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Any

from django.conf import settings
from django.core.management.base import CommandParser

from accessportal.commands.directory import ChangeCommand
from accessportal.directory import operations
from accessportal.directory.states import Changed
from accessportal.kernel.actors import Actor, system


class Command(ChangeCommand):
    help = (
        "Found the directory: the root, the portal's own groups, and the first person, who is admin of the root and operator. May be "
        "repeated for the same person; refused once somebody else is admin of the root."
    )
    example = 'found_directory --admin olga@example.com --name "Olga Orlov"'
    takes_actor = False

    def add_arguments(self, parser: CommandParser) -> None:
        super().add_arguments(parser)
        parser.add_argument("--admin", required=True, metavar="EMAIL", help="the first admin of the root")
        parser.add_argument("--name", required=True, help="the name of that person")

    def actor(self, options: Mapping[str, Any]) -> Actor:
        """Nobody is there yet who could do it."""
        return system("found_directory")

    def change(self, options: Mapping[str, Any], actor: Actor, now: datetime) -> tuple[str, Changed[Any]]:
        changed = operations.found_directory(
            admin_email=options["admin"],
            admin_name=options["name"],
            operator_group=settings.OPERATOR_GROUP,
            auditor_group=settings.AUDITOR_GROUP,
            actor=actor,
            now=now,
        )
        return f"The directory is founded; {options['admin']} is admin of the root.", changed
