from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from django.core.management.base import CommandParser
from rich.console import Console
from rich.progress import Progress

from accessportal.commands.base import Document, Outcome, plain, share
from accessportal.commands.mirror import OperatorCommand
from accessportal.directory import operations
from accessportal.kernel.brakes import MOST_SHARE
from accessportal.kernel.clock import SystemClock


class Command(OperatorCommand):
    help = (
        "Make the Cognito user pool equal to the directory: first the changes that it has not followed yet, then everything against "
        "everything. Stops before removing more than a set share of what the directory does not know. The worker does the first every "
        "minute and the second every day."
    )
    example = "mirror_directory --check --json"

    def add_arguments(self, parser: CommandParser) -> None:
        super().add_arguments(parser)
        parser.add_argument("--check", action="store_true", help="change nothing; exit with 1 when the two differ")
        parser.add_argument(
            "--most-share",
            type=share,
            default=MOST_SHARE,
            metavar="SHARE",
            help="the most of the pool that may go at once because the directory does not know it (0 to 1, default 0.2)",
        )

    def run(self, options: Mapping[str, Any]) -> Outcome:
        clock, is_check = SystemClock(), bool(options["check"])
        actor = self.actor(options)
        sweep = None if is_check else operations.sweep_mirror(clock=clock, limit_seconds=None)
        with Progress(console=self.progress_console(), disable=not self.is_watched) as bar:
            task = bar.add_task("reading the groups of the pool", total=None)
            comparison = operations.compare_mirror(
                apply=not is_check,
                most_share=options["most_share"],
                progress=lambda done, total: bar.update(task, completed=done, total=total),
                actor=actor,
                clock=clock,
            )
        document = {"check": is_check, "sweep": plain(sweep), "comparison": plain(comparison)}
        differs = bool(comparison.waiting or (comparison.differences if is_check else comparison.stopped))
        return Outcome(document, ok=not differs, problem=comparison.stopped or "Cognito differs from the directory, or may; see above.")

    def show(self, document: Document, console: Console) -> None:
        comparison = document["comparison"]
        for difference in comparison["differences"]:
            console.print(f"{difference['entity']}: {'; '.join(difference['differences'])}", soft_wrap=True)
        for waiting in comparison["waiting"]:
            console.print(f"{waiting['entity']} waits: {waiting['error']}", soft_wrap=True)
        if document["sweep"]:
            console.print(f"pending changes that Cognito has followed: {document['sweep']['done']}")
        console.print(f"users, groups and members of groups in the pool: {comparison['listed']}")
        console.print(f"differences: {len(comparison['differences'])}, mended: {comparison['mended']}")
