from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from django.core.management.base import CommandParser

from accessportal.access_requests import operations
from accessportal.commands.base import Outcome, PortalCommand, plain, share
from accessportal.kernel.actors import system
from accessportal.kernel.brakes import MOST_SHARE
from accessportal.kernel.clock import SystemClock


class Command(PortalCommand):
    help = (
        "Hold every open request against the directory: access of people and groups that are disabled, gone or no longer served ends, and "
        "what they wait for is cancelled. Ends nothing when it would be more than a set share."
    )
    example = "compare_subjects --most-share 0.5 --json"

    def add_arguments(self, parser: CommandParser) -> None:
        super().add_arguments(parser)
        parser.add_argument(
            "--most-share",
            type=share,
            default=MOST_SHARE,
            metavar="SHARE",
            help="the most that may end at once (0 to 1, default 0.2)",
        )

    def run(self, options: Mapping[str, Any]) -> Outcome:
        report = operations.compare_subjects(most_share=options["most_share"], actor=system("compare_subjects"), clock=SystemClock())
        count = len(report.failures)
        problem = report.stopped or (f"{count} items failed; the next comparison looks again." if count else "")
        return Outcome(plain(report), ok=not problem, problem=problem)
