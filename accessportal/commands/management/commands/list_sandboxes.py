from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

from django.core.management.base import CommandParser
from rich.console import Console

from accessportal.commands.base import Document, Outcome, PortalCommand, add_limit, first, limit_of
from accessportal.commands.sandboxes import sandbox_document, show_sandboxes
from accessportal.kernel.pages import Page
from accessportal.sandboxes import queries
from accessportal.sandboxes.states import Sandbox, Status, Unreadable


class Command(PortalCommand):
    help = "List sandboxes: those in a status, or those of a track. Without a choice: what is lent, being cleaned, stale or in quarantine."
    example = "list_sandboxes --status allocated --json"

    def add_arguments(self, parser: CommandParser) -> None:
        super().add_arguments(parser)
        which = parser.add_mutually_exclusive_group()
        which.add_argument("--status", type=str.lower, choices=[status.value for status in Status], metavar="S", help="longest lent first")
        which.add_argument("--track", metavar="TRACK", help="what a track holds, and held last; newest first")
        add_limit(parser)

    def run(self, options: Mapping[str, Any]) -> Outcome:
        limit = limit_of(options)
        found: list[Sandbox] = []
        unreadable: list[str] = []
        has_more = False
        for fetch in _lists(options):
            some, more = first(limit, fetch)
            found += [one for one in some if isinstance(one, Sandbox)]
            unreadable += [one.sandbox_id for one in some if isinstance(one, Unreadable)]
            has_more = has_more or more
        document = {"sandboxes": [sandbox_document(one) for one in found], "has_more": has_more, "unreadable": unreadable}
        return Outcome(document, ok=not unreadable, problem=f"These rows can't be read: {', '.join(unreadable)}")

    def show(self, document: Document, console: Console) -> None:
        if not document["sandboxes"]:
            console.print("None.")
            return
        show_sandboxes(document["sandboxes"], console)
        if document["has_more"]:
            console.print("There are more: --limit 0 lists all.")


def _lists(options: Mapping[str, Any]) -> list[Callable[[str | None], Page[Sandbox | Unreadable]]]:
    if options["track"] is not None:
        return [partial(_of_track, options["track"])]
    wanted = [Status(options["status"])] if options["status"] else [status for status in Status if status is not Status.AVAILABLE]
    return [partial(_by_status, status) for status in wanted]


def _by_status(status: Status, cursor: str | None) -> Page[Sandbox | Unreadable]:
    return queries.list_by_status(status=status, cursor=cursor)


def _of_track(track: str, cursor: str | None) -> Page[Sandbox | Unreadable]:
    return queries.list_of_track(track=track, cursor=cursor)
