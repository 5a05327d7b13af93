from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from django.core.management.base import CommandParser
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

from accessportal.access_requests import operations
from accessportal.assignments.states import Comparison, Remedy
from accessportal.commands.base import BadUsage, Document, Outcome, PortalCommand, plain, share
from accessportal.kernel.actors import system
from accessportal.kernel.brakes import MOST_SHARE
from accessportal.kernel.clock import SystemClock

_COLUMNS = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn())


class Command(PortalCommand):
    help = (
        "Compare every assignment of the portal's permission sets with the claims on it. Reports what is missing, unknown or left over; "
        "changes nothing without --apply, and stops before removing more than a set share. What is of a kind that the portal does not make "
        "without a record (a group's, or with a permission set that no rule gives) is a list of its own. A comparison that was stopped is "
        "gone on with."
    )
    example = "reconcile_assignments --apply --json"

    def add_arguments(self, parser: CommandParser) -> None:
        super().add_arguments(parser)
        parser.add_argument("--apply", action="store_true", help="make again what is missing and remove what is left over")
        unknown = parser.add_mutually_exclusive_group()
        unknown.add_argument(
            "--adopt-unknown", action="store_true", help="record what is unknown as held from outside; it is never removed"
        )
        unknown.add_argument("--remove-unknown", action="store_true", help="remove what is unknown")
        parser.add_argument(
            "--finding",
            action="append",
            default=[],
            metavar="ID",
            help="mend this finding of the last comparison alone, without comparing anew; may be given more than once",
        )
        parser.add_argument(
            "--most-share",
            type=share,
            default=MOST_SHARE,
            metavar="SHARE",
            help="the most that may go at once (0 to 1, default 0.2)",
        )

    def run(self, options: Mapping[str, Any]) -> Outcome:
        flags = {"apply": Remedy.REPAIR, "adopt_unknown": Remedy.ADOPT, "remove_unknown": Remedy.REMOVE_UNKNOWN}
        remedies = [remedy for flag, remedy in flags.items() if options[flag]]
        if options["finding"] and not remedies:
            text = "Say what is to be done about it: --apply, --adopt-unknown or --remove-unknown."
            raise BadUsage(text, flag="--finding", code="no_remedy")
        with Progress(*_COLUMNS, console=self.progress_console(), disable=not self.is_watched) as progress:
            bar = progress.add_task("Counting", total=None)

            def tell(at: Comparison) -> None:
                total = at.pairs if at.is_counted else None
                progress.update(bar, completed=at.pairs_read, total=total, description="Comparing" if at.is_counted else "Counting")

            report = operations.reconcile_assignments(
                remedies=remedies,
                chosen=options["finding"],
                most_share=options["most_share"],
                tell=tell,
                actor=system("reconcile"),
                clock=SystemClock(),
            )
        unread = (f"{one.account_id or 'the accounts'} of {one.permission_set_arn}: {one.error}" for one in report.unread)
        problem = "; ".join(filter(None, [report.stopped, *unread, *report.unreadable]))
        return Outcome(plain(report), ok=not problem, problem=problem)

    def show(self, document: Document, console: Console) -> None:
        for name in ("missing", "unknown", "left_over", "dead_claims"):
            for one in document[name]:
                console.print(f"{one['finding_id']}  {name.replace('_', ' ')}: {_words(one)}", soft_wrap=True)
        for reason in document["waiting"]:
            console.print(f"waits: {reason}", soft_wrap=True)
        at = document["comparison"]
        console.print(
            f"Compared {at['pairs_read']} lists with {document['listed']} assignments from {at['begun_at']} to {at['finished_at']}: "
            f"missing {len(document['missing'])}, unknown {len(document['unknown'])}, left over {len(document['left_over'])}, "
            f"dead claims {len(document['dead_claims'])}; mended {document['mended']}.",
            soft_wrap=True,
        )
        console.print(f"Not made by the portal, and no difference: {len(document['not_ours'])} (named with --json).", soft_wrap=True)


def _words(finding: Document) -> str:
    key = finding["key"]
    held = ", ".join(finding["claims"]) if "claims" in finding else finding["request_id"]
    who = f"{key['principal_type'].lower()} {key['principal_id']}"
    return f"{key['permission_set_arn']} in {key['account_id']} for {who}{f', held by {held}' if held else ''}"
