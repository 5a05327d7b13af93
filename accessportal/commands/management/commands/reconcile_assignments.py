from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from django.core.management.base import CommandParser

from accessportal.access_requests import operations
from accessportal.assignments.states import Remedy
from accessportal.commands.base import Outcome, PortalCommand, plain, share
from accessportal.kernel.actors import system
from accessportal.kernel.brakes import MOST_SHARE
from accessportal.kernel.clock import SystemClock


class Command(PortalCommand):
    help = (
        "Compare every assignment of the portal's permission sets with the claims on it. Reports what is missing, unknown or left over; "
        "changes nothing without --apply, and stops before removing more than a set share."
    )
    example = "reconcile_assignments --apply --json"

    def add_arguments(self, parser: CommandParser) -> None:
        super().add_arguments(parser)
        parser.add_argument("--apply", action="store_true", help="make again what is missing and remove what is left over")
        unknown = parser.add_mutually_exclusive_group()
        unknown.add_argument(
            "--adopt-unknown", action="store_true", help="record what is unknown as held from outside; it is never removed"
        )
        unknown.add_argument("--remove-unknown", action="store_true", help="remove what is unknown")
        parser.add_argument(
            "--most-share",
            type=share,
            default=MOST_SHARE,
            metavar="SHARE",
            help="the most that may go at once (0 to 1, default 0.2)",
        )

    def run(self, options: Mapping[str, Any]) -> Outcome:
        flags = {"apply": Remedy.REPAIR, "adopt_unknown": Remedy.ADOPT, "remove_unknown": Remedy.REMOVE_UNKNOWN}
        report = operations.reconcile_assignments(
            remedies=[remedy for flag, remedy in flags.items() if options[flag]],
            most_share=options["most_share"],
            actor=system("reconcile"),
            clock=SystemClock(),
        )
        unread = (f"{one.account_id or 'the accounts'} of {one.permission_set_arn}: {one.error}" for one in report.unread)
        problem = "; ".join(filter(None, [report.stopped, *unread]))
        return Outcome(plain(report), ok=not problem, problem=problem)
