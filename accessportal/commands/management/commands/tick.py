from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from django.core.management.base import CommandParser

from accessportal.access_requests import operations
from accessportal.commands.base import Outcome, PortalCommand, plain, read_whole_number
from accessportal.kernel.clock import SystemClock


class Command(PortalCommand):
    help = (
        "Do once what the worker does every minute: lapse what nobody decided, end what is over, carry out what is due, and stay "
        "for what ends within the look-ahead. May run beside the worker."
    )
    example = "tick --look-ahead 0 --json"

    def add_arguments(self, parser: CommandParser) -> None:
        super().add_arguments(parser)
        default = f"{operations.LOOKAHEAD_SECONDS:.0f}"
        words = f"stay for what ends within so many seconds (default: {default})"
        parser.add_argument("--look-ahead", default=default, metavar="SECONDS", help=words)

    def run(self, options: Mapping[str, Any]) -> Outcome:
        seconds = read_whole_number(options["look_ahead"], flag="--look-ahead")
        report = operations.tick(clock=SystemClock(), lookahead_seconds=seconds)
        count = len(report.failures)
        return Outcome(plain(report), ok=not count, problem=f"{count} items failed; each is tried again by itself.")
