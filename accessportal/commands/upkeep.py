"""What keeps the portal going, by hand: tables, ticks, the catalog, events."""

from __future__ import annotations

from typing import Annotated

from django.conf import settings
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, TextColumn

from accessportal.access_requests import operations as access_requests
from accessportal.audit.operations import publish_outbox, topic_sender
from accessportal.audit.queries import count_unpublished
from accessportal.catalog import operations as catalog
from accessportal.catalog import queries as catalog_queries
from accessportal.commands import terminal
from accessportal.commands.base import Outcome, command, document_of, failed
from accessportal.commands.flags import Flag, read_whole_number, share
from accessportal.commands.tables import ensure_all_tables
from accessportal.commands.terminal import Document, say, show_report
from accessportal.kernel.actors import Actor
from accessportal.kernel.brakes import MOST_SHARE
from accessportal.kernel.clock import Clock
from accessportal.kernel.counts import counted
from accessportal.kernel.pages import every

_LONGEST_SECONDS = 24 * 3600.0


def _show_tables(document: Document, console: Console) -> None:
    for table in document["tables"]:
        done = ["created" if table["created"] else "exists"]
        done += [f"index {name} added" for name in table["added_indexes"]]
        if table["unsupported"]:
            done.append(f"this engine has no {', no '.join(table['unsupported'])}")
        say(console, f"{table['table']}: {'; '.join(done)}")


@command("--json", show=_show_tables)
def create_tables(*, clock: Clock) -> Document:
    """Create the DynamoDB tables that are missing, and add new indexes and protections to those that exist. May be repeated."""
    return {"tables": ensure_all_tables(clock=clock)}


@command("--look-ahead 0 --json", show=show_report)
def tick(
    *,
    look_ahead: Annotated[
        float,
        Flag(f"stay for what ends within so many seconds (default: {access_requests.LOOKAHEAD_SECONDS:.0f})", "SECONDS", read_whole_number),
    ] = access_requests.LOOKAHEAD_SECONDS,
    clock: Clock,
) -> Outcome:
    """Do once what the worker does every minute: lapse what nobody decided, end what is over, carry out what is due, and stay for
    what ends within the look-ahead. May run beside the worker."""
    report = access_requests.tick(clock=clock, lookahead_seconds=look_ahead)
    return Outcome(report, failed(report.failures, "items failed", one="item failed", then="; the worker tries again."))


@command()
def sync_catalog(
    *,
    most_share: Annotated[
        float, Flag("the most of what the catalog has that may go at once (0 to 1, default 0.2)", "SHARE", type=share)
    ] = MOST_SHARE,
    clock: Clock,
) -> object:
    """Read accounts, permission sets and principals from AWS anew. Half a reading never replaces a whole one, nor does one that
    lacks most of it."""
    return catalog.sync_catalog(most_share=most_share, now=clock.now(), clock=clock)


def _tags(row: Document) -> str:
    return "unreadable" if row["tags"] is None else ", ".join(f"{key}={value}" for key, value in row["tags"].items())


def _show_accounts(document: Document, console: Console) -> None:
    if document["synced_at"] is None:
        console.print("The catalog has never been read. Run: python manage.py sync_catalog")
        return
    columns: terminal.Columns = {"account": "account_id", "name": "name", "place": "ou_path", "tags": _tags, "status": "status"}
    terminal.show_rows(document["accounts"], columns, console)
    console.print(f"{counted(len(document['accounts']), 'account', 'accounts')}, as read at {document['synced_at']}")


@command("--search payments", show=_show_accounts)
def list_accounts(*, search: Annotated[str, Flag("a part of the name, id, place or tags", "TEXT")] = "") -> Document:
    """List the AWS accounts of the catalog, with their place in the tree and their tags."""
    accounts = every(lambda cursor: catalog_queries.list_accounts(search=search, cursor=cursor, limit=200))
    return {"accounts": list(accounts), "synced_at": catalog_queries.freshness().synced_at}


def _show_published(document: Document, console: Console) -> None:
    waiting = f"{document['waiting']['count']}{' or more' if document['waiting']['is_more'] else ''}"
    if not document["has_topic"]:
        say(console, f"PORTAL_EVENTS_TOPIC_ARN is not set, so nothing is published. Events kept: {waiting}.")
        return
    for failure in document["failures"]:
        say(console, f"{failure['item']}: {failure['error']}")
    console.print(f"{document['published']} published, {waiting} waiting.")
    if document["left_to_others"]:
        console.print("Somebody else is publishing a part of them right now.")


@command("--as olga@example.com --limit 1000 --json", show=_show_published)
def publish_events(
    *,
    limit: Annotated[int | None, Flag("at most so many events (default: all)", "N", read_whole_number)] = None,
    actor: Actor,
    clock: Clock,
) -> Outcome:
    """Publish to the topic of PORTAL_EVENTS_TOPIC_ARN what waits, in order for each entity. The worker does it every minute; this
    stays until all is done. May run beside the worker. Exit code 1 when something could not be published."""
    waiting = count_unpublished()
    # The count is bounded; where there are more, the bar has no end but moves.
    total = limit if waiting.is_more else waiting.count if limit is None else min(limit, waiting.count)
    with terminal.progress(TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn()) as progress:
        bar = progress.add_task("Events", total=total)
        report = publish_outbox(
            send=topic_sender(settings.EVENTS_TOPIC_ARN),
            limit=limit,
            limit_seconds=_LONGEST_SECONDS,
            told=lambda published: progress.update(bar, completed=published),
            actor=actor,
            clock=clock,
        )
    problem = report.stopped or failed(
        report.failures,
        "chains wait for an event that could not be published.",
        one="chain waits for an event that could not be published.",
    )
    return Outcome(document_of(report) | {"waiting": count_unpublished()}, "" if report.is_ok else problem)
