from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Any

from django.core.management.base import CommandParser

from accessportal.commands.base import BadUsage
from accessportal.commands.directory import ROLES, ChangeCommand
from accessportal.directory import operations
from accessportal.directory.states import Changed, GroupRole
from accessportal.kernel.actors import Actor


class Command(ChangeCommand):
    help = "Add a person, in a group at once (for admins of that group) or in none (for admins of the root)."
    example = 'create_user alice@example.com --name "Alice Archer" --group /engineering --role reader --as olga@example.com'

    def add_arguments(self, parser: CommandParser) -> None:
        super().add_arguments(parser)
        parser.add_argument("email", metavar="EMAIL")
        parser.add_argument("--name", required=True)
        parser.add_argument("--group", metavar="ID", help="the group that they are in from the first moment on")
        parser.add_argument("--role", choices=ROLES, help="their role there; goes with --group")

    def change(self, options: Mapping[str, Any], actor: Actor, now: datetime) -> tuple[str, Changed[Any]]:
        if bool(options["group"]) != bool(options["role"]):
            flag = "--role" if options["group"] else "--group"
            raise BadUsage("--group and --role go together: give both or neither.", flag=flag, code="group_without_role")
        changed = operations.create_person(
            email=options["email"],
            name=options["name"],
            group_id=options["group"] or None,
            role=GroupRole(options["role"]) if options["role"] else None,
            actor=actor,
            now=now,
        )
        place = f" and is {options['role']} of {options['group']}" if options["group"] else ""
        return f"{changed.record.email} was created{place}.", changed
