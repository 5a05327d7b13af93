from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Any

from django.core.management.base import CommandParser

from accessportal.commands.directory import ChangeCommand
from accessportal.directory import operations
from accessportal.directory.states import Changed, Mirrored
from accessportal.kernel.actors import Actor, fold_email


class Command(ChangeCommand):
    help = (
        "Let another account of the sign-in service come in at an address: the next one that does is kept. Make sure first that it "
        "is the same person, or rightly somebody else. An address keeps its account also while nobody has it. For admins of the root."
    )
    example = "forget_identity alice@example.com --as olga@example.com"

    def add_arguments(self, parser: CommandParser) -> None:
        super().add_arguments(parser)
        parser.add_argument("email", metavar="EMAIL")

    def change(self, options: Mapping[str, Any], actor: Actor, now: datetime) -> tuple[str, Changed[Any]]:
        person = operations.forget_identity(email=options["email"], actor=actor, now=now)
        # Cognito knows nothing of it.
        email = person.email if person is not None else fold_email(options["email"])
        return f"{email} may sign in with another account now; the next one is kept.", Changed(person, Mirrored(is_done=True))
