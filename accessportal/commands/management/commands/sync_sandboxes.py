from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from django.core.management.base import CommandParser
from rich.console import Console

from accessportal.commands.base import Document, Outcome, PortalCommand, plain, share
from accessportal.commands.sandboxes import show_counts
from accessportal.kernel.clock import SystemClock
from accessportal.sandboxes import operations
from accessportal.sandboxes.states import SyncStopped
from accessportal.upstream.client import provider


class Command(PortalCommand):
    help = (
        "Hold the pool against the provider's whole list: new sandboxes come in, those missing for the second time go stale. "
        "Stops and changes nothing when too much would go at once."
    )
    example = "sync_sandboxes --dry-run"

    def add_arguments(self, parser: CommandParser) -> None:
        super().add_arguments(parser)
        parser.add_argument("--dry-run", action="store_true", help="show what would change, and change nothing")
        parser.add_argument(
            "--most-share",
            type=share,
            default=0.2,
            metavar="SHARE",
            help="stop when more than this share of the pool would go stale (default: 0.2)",
        )

    def run(self, options: Mapping[str, Any]) -> Outcome:
        most_share = options["most_share"]
        try:
            plan = operations.sync(provider=provider(), apply=not options["dry_run"], most_share=most_share, clock=SystemClock())
        except SyncStopped as stopped:
            return Outcome(plain(stopped.plan) | {"stopped": stopped.message}, ok=False, problem=stopped.message)
        return Outcome(plain(plan), ok=not plan.failures, problem=f"{len(plan.failures)} sandboxes failed; the next run tries again.")

    def show(self, document: Document, console: Console) -> None:
        show_counts(document, console)
