from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from django.core.management.base import CommandParser
from rich.console import Console

from accessportal.access_requests import operations
from accessportal.commands.base import Document, Outcome, PortalCommand
from accessportal.commands.requests import request_document, show_request
from accessportal.kernel.clock import SystemClock


class Command(PortalCommand):
    help = "End an access before its time. Its holder, an approver of its rule and an operator may."
    example = "end_access 3f0c6a52-5d0e-4c8f-9a57-0a7c1f6d2b11 --as alice@example.com"
    takes_actor = True

    def add_arguments(self, parser: CommandParser) -> None:
        super().add_arguments(parser)
        parser.add_argument("request_id", metavar="REQUEST_ID")
        parser.add_argument("--reason", default="", metavar="TEXT")

    def run(self, options: Mapping[str, Any]) -> Outcome:
        actor = self.actor(options)
        request = operations.end(request_id=options["request_id"], reason=options["reason"], actor=actor, now=SystemClock().now())
        return Outcome(request_document(request))

    def show(self, document: Document, console: Console) -> None:
        show_request(document, console)
