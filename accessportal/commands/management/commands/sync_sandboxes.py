from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from django.core.management.base import CommandParser
from rich.console import Console

from accessportal.commands.base import BadUsage, Document, Outcome, PortalCommand, plain
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
            "--most-share", default="0.2", metavar="SHARE", help="stop when more than this share of the pool would go stale (default: 0.2)"
        )

    def run(self, options: Mapping[str, Any]) -> Outcome:
        share = _read_share(options["most_share"])
        try:
            plan = operations.sync(provider=provider(), apply=not options["dry_run"], most_share=share, clock=SystemClock())
        except SyncStopped as stopped:
            return Outcome(plain(stopped.plan) | {"stopped": stopped.message}, ok=False, problem=stopped.message)
        return Outcome(plain(plan), ok=not plan.failures, problem=f"{len(plan.failures)} sandboxes failed; the next run tries again.")

    def show(self, document: Document, console: Console) -> None:
        show_counts(document, console)


def _read_share(text: str) -> float:
    try:
        share = float(text)
    except ValueError:
        share = -1.0
    if not 0 <= share <= 1:
        raise BadUsage(f"“{text[:40]}” is not a share: give a number from 0 to 1.", flag="--most-share", code="share_unreadable")
    return share
