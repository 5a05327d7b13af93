from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from django.conf import settings
from django.core.management.base import CommandParser
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn

from accessportal.audit.effects import topic_sender
from accessportal.audit.operations import publish_outbox
from accessportal.audit.queries import count_unpublished
from accessportal.commands.base import Document, Outcome, PortalCommand, plain, read_whole_number
from accessportal.kernel.clock import SystemClock

_LONGEST_SECONDS = 24 * 3600.0


class Command(PortalCommand):
    help = (
        "Publish to the topic of PORTAL_EVENTS_TOPIC_ARN what waits, in order for each entity. The worker does it every minute; "
        "this stays until all is done. May run beside the worker. Exit code 1 when something could not be published."
    )
    example = "publish_events --as olga@example.com --limit 1000 --json"
    takes_actor = True

    def add_arguments(self, parser: CommandParser) -> None:
        super().add_arguments(parser)
        parser.add_argument("--limit", metavar="N", help="at most so many events (default: all)")

    def run(self, options: Mapping[str, Any]) -> Outcome:
        limit = None if options["limit"] is None else read_whole_number(options["limit"], flag="--limit")
        waiting = count_unpublished()
        # The count is bounded; where there are more, the bar has no end but moves.
        total = limit if waiting.is_more else waiting.count if limit is None else min(limit, waiting.count)
        columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn())
        with Progress(*columns, console=self.progress_console(), disable=not self.is_watched) as progress:
            bar = progress.add_task("Events", total=total)
            report = publish_outbox(
                send=topic_sender(settings.EVENTS_TOPIC_ARN),
                limit=limit,
                limit_seconds=_LONGEST_SECONDS,
                told=lambda published: progress.update(bar, completed=published),
                actor=self.actor(options),
                clock=SystemClock(),
            )
        problem = report.stopped or f"{len(report.failures)} entities wait for an event that could not be published."
        return Outcome({**plain(report), "waiting": plain(count_unpublished())}, ok=report.is_ok, problem=problem)

    def show(self, document: Document, console: Console) -> None:
        waiting = f"{document['waiting']['count']}{' or more' if document['waiting']['is_more'] else ''}"
        if not document["has_topic"]:
            console.print(f"PORTAL_EVENTS_TOPIC_ARN is not set: {waiting} events are kept, unpublished.", soft_wrap=True)
            return
        for failure in document["failures"]:
            console.print(f"{failure['entity']}, event {failure['sequence']}: {failure['error']}", soft_wrap=True)
        console.print(f"{document['published']} published, {waiting} waiting.")
        if document["left_to_others"]:
            console.print("Somebody else is publishing a part of them right now.")
