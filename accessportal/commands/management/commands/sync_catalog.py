from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from django.core.management.base import CommandParser

from accessportal.catalog import operations
from accessportal.commands.base import Outcome, PortalCommand, plain, share
from accessportal.kernel.brakes import MOST_SHARE
from accessportal.kernel.clock import SystemClock


class Command(PortalCommand):
    help = (
        "Read accounts, permission sets and principals from AWS anew. Half a reading never replaces a whole one, nor does one "
        "that lacks most of it."
    )
    example = "sync_catalog"

    def add_arguments(self, parser: CommandParser) -> None:
        super().add_arguments(parser)
        parser.add_argument(
            "--most-share",
            type=share,
            default=MOST_SHARE,
            metavar="SHARE",
            help="the most of what the catalog has that may go at once (0 to 1, default 0.2)",
        )

    def run(self, options: Mapping[str, Any]) -> Outcome:
        clock = SystemClock()
        return Outcome(plain(operations.sync_catalog(most_share=options["most_share"], now=clock.now(), clock=clock)))
