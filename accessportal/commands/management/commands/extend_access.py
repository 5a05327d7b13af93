from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from django.core.management.base import CommandParser
from rich.console import Console

from accessportal.access_requests import operations
from accessportal.commands.base import Document, Outcome, PortalCommand, read_duration
from accessportal.commands.requests import request_document, show_request
from accessportal.kernel.clock import SystemClock
from accessportal.kernel.ids import new_submission_id


class Command(PortalCommand):
    help = "Ask for more time: a further request for the same thing, with its own decision. Prints the new request, its id first."
    example = "extend_access 3f0c6a52-5d0e-4c8f-9a57-0a7c1f6d2b11 --as alice@example.com --duration 2h"
    takes_actor = True

    def add_arguments(self, parser: CommandParser) -> None:
        super().add_arguments(parser)
        parser.add_argument("request_id", metavar="REQUEST_ID")
        parser.add_argument("--duration", required=True, metavar="D", help="like 30m, 8h, 2h30m or PT8H, from now")
        parser.add_argument("--reason", default="", metavar="TEXT", help="why (default: the reason of the first request)")
        parser.add_argument("--ticket", default="", metavar="T", help="the ticket (default: the one of the first request)")

    def run(self, options: Mapping[str, Any]) -> Outcome:
        duration = read_duration(options["duration"])
        request = operations.extend(
            request_id=options["request_id"],
            duration_seconds=duration,
            reason=options["reason"],
            ticket_id=options["ticket"],
            submission_id=new_submission_id(),
            actor=self.actor(options),
            now=SystemClock().now(),
        )
        return Outcome(request_document(request))

    def show(self, document: Document, console: Console) -> None:
        show_request(document, console)
