from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from django.core.management.base import CommandParser
from rich.console import Console

from accessportal.commands.base import Document, Outcome, PortalCommand, read_duration
from accessportal.commands.sandboxes import require_operator, sandbox_document, show_sandbox
from accessportal.kernel.clock import SystemClock
from accessportal.sandboxes import operations


class Command(PortalCommand):
    help = "Lend a free sandbox to a track. The same key gives the same sandbox until it is given back. Operators may."
    example = "allocate_sandbox --as olga@example.com --track track-123 --duration 2h"
    takes_actor = True

    def add_arguments(self, parser: CommandParser) -> None:
        super().add_arguments(parser)
        parser.add_argument("--track", required=True, metavar="TRACK", help="who gets it")
        parser.add_argument("--key", metavar="KEY", help="the idempotency key (default: the track)")
        parser.add_argument("--name-prefix", default="", metavar="TEXT", help="only a sandbox whose name begins so")
        parser.add_argument("--duration", metavar="D", help="like 30m or 2h (default, and at most: the lab's duration)")

    def run(self, options: Mapping[str, Any]) -> Outcome:
        seconds = None if options["duration"] is None else read_duration(options["duration"])
        taken = operations.take(
            key=options["track"] if options["key"] is None else options["key"],
            track=options["track"],
            name_prefix=options["name_prefix"],
            duration_seconds=seconds,
            actor=require_operator(self.actor(options)),
            now=SystemClock().now(),
        )
        return Outcome(sandbox_document(taken.sandbox) | {"is_repeat": taken.is_repeat})

    def show(self, document: Document, console: Console) -> None:
        show_sandbox(document, console)
