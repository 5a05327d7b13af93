from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from django.core.management.base import CommandParser
from rich.console import Console

from accessportal.access_requests import queries
from accessportal.commands.base import Document, Outcome, PortalCommand, plain
from accessportal.commands.requests import request_document, show_request
from accessportal.kernel.actors import system
from accessportal.kernel.clock import SystemClock


class Command(PortalCommand):
    help = "Show one request whole: its state, facts, receipts and history."
    example = "show_request 3f0c6a52-5d0e-4c8f-9a57-0a7c1f6d2b11 --json"

    def add_arguments(self, parser: CommandParser) -> None:
        super().add_arguments(parser)
        parser.add_argument("request_id", metavar="REQUEST_ID")

    def run(self, options: Mapping[str, Any]) -> Outcome:
        request = queries.get(request_id=options["request_id"], actor=system("commands"), now=SystemClock().now())
        return Outcome(request_document(request) | {"history": plain(queries.history(request=request))})

    def show(self, document: Document, console: Console) -> None:
        show_request({name: value for name, value in document.items() if name != "history"}, console)
        console.print("history:")
        for event in document["history"]:
            console.print(f"  {event['at']}  {event['action']}  by {event['actor']}", soft_wrap=True)
