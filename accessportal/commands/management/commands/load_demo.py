from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from typing import Any

from django.conf import settings
from django.core.management.base import CommandParser
from rich.console import Console
from rich.progress import Progress

from accessportal.commands.base import Document, Error, Outcome, PortalCommand, progress_bars, read_whole_number
from accessportal.demo.directory import PEOPLE
from accessportal.demo.history import make_history
from accessportal.demo.loading import load_demo, load_sandboxes
from accessportal.kernel.clock import SystemClock


class Command(PortalCommand):
    help = "Fill the portal with demo people, accounts and rules. What is there already stays as it is. Refused outside a demo."
    example = "load_demo --accounts 5000 --permission-sets 500 --requests 1000 --sandboxes 200"

    def add_arguments(self, parser: CommandParser) -> None:
        super().add_arguments(parser)
        parser.add_argument("--accounts", default="60", metavar="N", help="so many AWS accounts (default: 60)")
        parser.add_argument("--permission-sets", default="12", metavar="N", help="so many permission sets (default: 12)")
        parser.add_argument("--requests", default="0", metavar="N", help="so many requests of history, finished and open ones (default: 0)")
        parser.add_argument("--sandboxes", default="0", metavar="N", help="so many sandboxes in the twin and in the pool (default: 0)")

    def run(self, options: Mapping[str, Any]) -> Outcome:
        accounts = read_whole_number(options["accounts"], flag="--accounts")
        permission_sets = read_whole_number(options["permission_sets"], flag="--permission-sets")
        requests = read_whole_number(options["requests"], flag="--requests")
        sandboxes = read_whole_number(options["sandboxes"], flag="--sandboxes")
        if not settings.DEMO:
            raise Error("This is not a demo (PORTAL_DEMO is off): made-up people with a shared password would be a way in.")
        with Progress(console=self.progress_console(), disable=not self.is_watched) as progress:
            report = load_demo(accounts=accounts, permission_sets=permission_sets, clock=SystemClock(), progress=progress_bars(progress))
            _make_history(requests, progress)
            new = load_sandboxes(count=sandboxes, clock=SystemClock(), progress=progress_bars(progress)) if sandboxes else 0
        return Outcome(dataclasses.asdict(report) | {"requests": requests, "new_sandboxes": new, "sign_in": [one.email for one in PEOPLE]})

    def show(self, document: Document, console: Console) -> None:
        super().show({name: value for name, value in document.items() if name not in {"password", "sign_in"}}, console)
        console.print(f"Sign in with the password {document['password']} as {', '.join(document['sign_in'])}", soft_wrap=True)


def _make_history(count: int, progress: Progress) -> None:
    if not count:
        return
    bar = progress.add_task("Requests", total=count)
    for _request in make_history(count=count, now=SystemClock().now()):
        progress.advance(bar)
