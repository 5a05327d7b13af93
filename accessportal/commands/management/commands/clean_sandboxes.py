from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from django.core.management.base import CommandParser
from rich.console import Console

from accessportal.commands.base import Document, Outcome, PortalCommand, plain, read_whole_number
from accessportal.commands.sandboxes import show_counts
from accessportal.kernel.clock import SystemClock
from accessportal.sandboxes import operations
from accessportal.upstream.client import provider


class Command(PortalCommand):
    help = "Delete at the provider what was given back and is due, and lend again what is ready, as the worker does every minute."
    example = "clean_sandboxes --limit 100 --json"

    def add_arguments(self, parser: CommandParser) -> None:
        super().add_arguments(parser)
        parser.add_argument("--limit", default="500", metavar="N", help="at most so many in this run (default: 500)")

    def run(self, options: Mapping[str, Any]) -> Outcome:
        limit = read_whole_number(options["limit"], flag="--limit")
        report = operations.clean(provider=provider(), clock=SystemClock(), limit=limit)
        is_ok = not report.failures and not report.stopped
        problem = report.stopped or f"{len(report.failures)} sandboxes failed; each is tried again by itself, with growing gaps."
        return Outcome(plain(report), ok=is_ok, problem=problem)

    def show(self, document: Document, console: Console) -> None:
        show_counts(document, console)
