from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from rich.console import Console

from accessportal.commands.base import Document, Outcome, PortalCommand, plain
from accessportal.commands.sandboxes import show_counts
from accessportal.kernel.clock import SystemClock
from accessportal.sandboxes import operations


class Command(PortalCommand):
    help = "Take back every sandbox whose time is over, grace included, as the worker does every minute."
    example = "expire_sandboxes --json"

    def run(self, options: Mapping[str, Any]) -> Outcome:
        report = operations.expire(clock=SystemClock())
        problem = f"{len(report.failures)} sandboxes failed; each is tried again by the next run."
        return Outcome(plain(report), ok=not report.failures, problem=problem)

    def show(self, document: Document, console: Console) -> None:
        show_counts(document, console)
