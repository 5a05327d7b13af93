from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Any

from django.core.management.base import CommandParser

from accessportal.access_requests.queries import ACCESS_ENDS
from accessportal.commands.directory import ChangeCommand
from accessportal.directory import operations, queries
from accessportal.directory.states import Changed
from accessportal.kernel.actors import Actor


class Command(ChangeCommand):
    help = (
        "Take back what an admin has given a person in a group. Whoever came with a group and is in none afterwards is "
        "deleted. Memberships that a request gave end with the request. For admins of the group."
    )
    example = "revoke_role alice@example.com /engineering/payments --as olga@example.com"

    def add_arguments(self, parser: CommandParser) -> None:
        super().add_arguments(parser)
        parser.add_argument("email", metavar="EMAIL")
        parser.add_argument("group_id", metavar="GROUP", help="the group's path")

    def change(self, options: Mapping[str, Any], actor: Actor, now: datetime) -> tuple[str, Changed[Any]]:
        changed = operations.revoke_membership(email=options["email"], group_id=options["group_id"], actor=actor, now=now)
        more = "" if changed.record else f" Nothing else was left, so the person was deleted. {ACCESS_ENDS}"
        stays = queries.role_by_requests(email=options["email"], group_id=options["group_id"], now=now)
        if stays is not None:
            more = f" By a request they stay in it, as {stays.value}, until its end."
        return f"The role of {options['email']} in {options['group_id']} was revoked.{more}", changed
