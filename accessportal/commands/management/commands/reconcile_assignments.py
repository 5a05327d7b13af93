from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from django.core.management.base import CommandParser

from accessportal.assignments import operations
from accessportal.commands.base import Outcome, PortalCommand, plain
from accessportal.kernel.actors import system
from accessportal.kernel.clock import SystemClock


class Command(PortalCommand):
    help = (
        "Compare every assignment of the portal's permission sets with the claims on it. Reports what is missing, unknown or left over; "
        "changes nothing without --apply, and stops before removing more than a set share."
    )
    example = "reconcile_assignments --apply --json"

    def add_arguments(self, parser: CommandParser) -> None:
        super().add_arguments(parser)
        parser.add_argument("--apply", action="store_true", help="adopt what is missing in our records and remove what is left over")

    def run(self, options: Mapping[str, Any]) -> Outcome:
        report = operations.reconcile(apply=options["apply"], actor=system("reconcile"), clock=SystemClock())
        return Outcome(plain(report))
