from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Any

from django.core.management.base import CommandParser

from accessportal.commands.directory import ROLES, ChangeCommand
from accessportal.directory import operations
from accessportal.directory.states import Changed, GroupRole
from accessportal.kernel.actors import Actor


class Command(ChangeCommand):
    help = "Put a person into a group without an end, or change the role that they have there. For admins of the group."
    example = "grant_role alice@example.com /engineering/payments contributor --as olga@example.com"

    def add_arguments(self, parser: CommandParser) -> None:
        super().add_arguments(parser)
        parser.add_argument("email", metavar="EMAIL")
        parser.add_argument("group_id", metavar="GROUP", help="the group's path")
        parser.add_argument("role", metavar="ROLE", choices=ROLES, help=", ".join(ROLES))

    def change(self, options: Mapping[str, Any], actor: Actor, now: datetime) -> tuple[str, Changed[Any]]:
        changed = operations.grant_membership(
            email=options["email"], group_id=options["group_id"], role=GroupRole(options["role"]), actor=actor, now=now
        )
        return f"{changed.record.email} is {options['role']} of {options['group_id']} now.", changed
