from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from django.core.management.base import CommandParser
from rich.console import Console
from rich.progress import Progress

from accessportal.commands.base import BadUsage, Document, Outcome, PortalCommand, plain, read_duration
from accessportal.sandboxes import ledger, queries
from accessportal.upstream import client as upstream


class Command(PortalCommand):
    help = (
        "Check the ledger of the pool: every hand-over by its events, against what the provider shows, and against the receipts of clients "
        "if there are any. Reports two holders at once, hand-overs without event, what one side alone knows of, what the provider has "
        "reset since, and rows that can't be read. "
        "Exit code 1 when there is one."
    )
    example = "verify_sandboxes --receipts receipts.jsonl --json"

    def add_arguments(self, parser: CommandParser) -> None:
        super().add_arguments(parser)
        parser.add_argument("--receipts", metavar="FILE", help="what clients were told, one JSON object a line")
        parser.add_argument("--slack", default="2s", metavar="D", help="how far the clients' clocks may be wrong (default: 2s)")

    def run(self, options: Mapping[str, Any]) -> Outcome:
        slack = read_duration(options["slack"], flag="--slack")
        receipts = [] if options["receipts"] is None else _read(options["receipts"])
        with Progress(console=self.progress_console(), disable=not self.is_watched) as progress:
            bar = progress.add_task("Sandboxes", total=None)
            verdict = queries.verify(
                receipts=receipts,
                slack_seconds=slack,
                provider=upstream.provider() if upstream.is_set() else None,
                progress=lambda: progress.advance(bar),
            )
        problem = f"{len(verdict.problems)} problems in the ledger of the pool."
        return Outcome(plain(verdict) | {"receipts": len(receipts)}, ok=not verdict.problems, problem=problem)

    def show(self, document: Document, console: Console) -> None:
        for one in document["problems"]:
            console.print(f"{one['kind']}: {one['sandbox_id'] or 'the pool'}: {one['words']}", soft_wrap=True)
        console.print(f"{document['sandboxes']} sandboxes, {document['receipts']} receipts, {len(document['problems'])} problems.")


def _read(name: str) -> list[ledger.Receipt]:
    try:
        lines = Path(name).read_text().splitlines()
    except (OSError, UnicodeDecodeError) as error:
        raise BadUsage(f"{name} can't be read: {error}", flag="--receipts", code="file_unreadable") from error
    return ledger.read_receipts(lines)
