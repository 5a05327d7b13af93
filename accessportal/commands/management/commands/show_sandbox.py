from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from django.core.management.base import CommandParser
from rich.console import Console

from accessportal.commands.base import Document, Outcome, PortalCommand, plain
from accessportal.commands.sandboxes import sandbox_document, show_sandbox
from accessportal.kernel.clock import SystemClock
from accessportal.sandboxes import queries


class Command(PortalCommand):
    help = "Show one sandbox: how it stands and why, and every holder that it ever had."
    example = "show_sandbox 3f0c6a52-5d0e-5c8f-9a57-0a7c1f6d2b11"

    def add_arguments(self, parser: CommandParser) -> None:
        super().add_arguments(parser)
        parser.add_argument("sandbox_id", metavar="SANDBOX_ID")

    def run(self, options: Mapping[str, Any]) -> Outcome:
        sandbox_id = options["sandbox_id"]
        document = sandbox_document(queries.get(sandbox_id=sandbox_id))
        document["explanation"] = queries.explain(sandbox_id=sandbox_id, now=SystemClock().now())
        return Outcome(document | {"history": [plain(event) for event in queries.history(sandbox_id=sandbox_id)]})

    def show(self, document: Document, console: Console) -> None:
        show_sandbox({name: value for name, value in document.items() if name != "history"}, console)
        for event in document["history"]:
            words = " ".join(f"{name}={value}" for name, value in event["data"].items())
            console.print(f"{event['at']}  {event['action']}  by {event['actor']}  {words}", soft_wrap=True)
