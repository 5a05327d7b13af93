from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from django.core.management.base import CommandParser
from rich.console import Console
from rich.progress import Progress, TaskID

from accessportal.audit.states import ChainBreak
from accessportal.commands.audit_heads import Head, breaks_of_rules, every_head
from accessportal.commands.audit_walk import Walk
from accessportal.commands.base import BadUsage, Document, Outcome, PortalCommand, plain, read_whole_number
from accessportal.kernel.clock import SystemClock
from accessportal.kernel.pages import Unreadable

_MOST_WORKERS = 64
# Where nobody sits in front of it, a line for every so many.
_TOLD_EVERY = 10_000


class Command(PortalCommand):
    help = (
        "Walk the audit chain of every request, assignment, rule, person, group and sandbox, those that are gone too, and report each "
        "break. Reads the whole audit log. Exit code 1 when there is a break."
    )
    example = "verify_audit --json"

    def add_arguments(self, parser: CommandParser) -> None:
        super().add_arguments(parser)
        parser.add_argument("--workers", default="4", metavar="N", help="how many read the log side by side, 1 to 64 (default: 4)")

    def run(self, options: Mapping[str, Any]) -> Outcome:
        workers = read_whole_number(options["workers"], flag="--workers")
        if not 1 <= workers <= _MOST_WORKERS:
            raise BadUsage(f"Give a number from 1 to {_MOST_WORKERS}.", flag="--workers", code="workers_invalid")
        breaks: list[ChainBreak] = []
        began = SystemClock().now()

        def pass_over(one: Unreadable) -> None:
            breaks.append(ChainBreak(one.key, 0, str(one)))

        with Progress(console=self.progress_console(), disable=not self.is_watched) as progress:
            reading = progress.add_task("Items", total=None)
            heads: dict[str, Head] = {}
            for head in every_head(pass_over):
                heads[head.entity] = head
                progress.advance(reading)
            progress.update(reading, total=len(heads))
            bar = progress.add_task("Chains", total=len(heads))
            walk = Walk(heads, began=began, tell=lambda: self._tell(progress, bar))
            walk.run(workers=workers)
        breaks += walk.breaks
        breaks += breaks_of_rules()
        document = {"chains": walk.chains, "gone": walk.gone, "breaks": [plain(one) for one in breaks]}
        return Outcome(document, ok=not breaks, problem=f"{len(breaks)} breaks in the audit log.")

    def _tell(self, progress: Progress, bar: TaskID) -> None:
        progress.advance(bar)
        done = int(progress.tasks[bar].completed)
        if not self.is_watched and done % _TOLD_EVERY == 0:
            self.stderr.write(f"{done} chains walked")

    def show(self, document: Document, console: Console) -> None:
        for one in document["breaks"]:
            console.print(f"{one['entity']}, event {one['sequence']}: {one['problem']}", soft_wrap=True)
        console.print(
            f"{document['chains']} chains walked, {document['gone']} of them of things that are gone; {len(document['breaks'])} breaks."
        )
