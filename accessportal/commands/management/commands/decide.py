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
    help = "Approve or deny a request."
    example = 'decide 3f0c6a52-5d0e-4c8f-9a57-0a7c1f6d2b11 deny --as bob@example.com --reason "Use the staging account"'
    takes_actor = True

    def add_arguments(self, parser: CommandParser) -> None:
        super().add_arguments(parser)
        parser.add_argument("request_id", metavar="REQUEST_ID")
        parser.add_argument("decision", choices=("approve", "deny"))
        parser.add_argument("--reason", default="", metavar="TEXT", help="needed to deny; the requester sees it")

    def run(self, options: Mapping[str, Any]) -> Outcome:
        verb = operations.approve if options["decision"] == "approve" else operations.deny
        actor = self.actor(options)
        request = verb(request_id=options["request_id"], reason=options["reason"], actor=actor, now=SystemClock().now())
        return Outcome(request_document(request))

    def show(self, document: Document, console: Console) -> None:
        show_request(document, console)
