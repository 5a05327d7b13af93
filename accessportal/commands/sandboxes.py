"""The sandbox pool from a terminal."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime
from functools import partial
from pathlib import Path
from typing import Annotated

from rich.console import Console

from accessportal.commands import terminal
from accessportal.commands.base import Outcome, command, document_of, failed, first
from accessportal.commands.flags import BadUsage, Flag, Limit, read_duration, read_whole_number, share
from accessportal.commands.terminal import Document, Facts, Listing, moment, say, show_report, with_history
from accessportal.kernel.actors import Actor
from accessportal.kernel.brakes import MOST_SHARE
from accessportal.kernel.clock import Clock
from accessportal.kernel.counts import counted
from accessportal.kernel.pages import Page
from accessportal.sandboxes import ledger, operations, queries
from accessportal.sandboxes.states import Sandbox, Status, SyncStopped, Unreadable
from accessportal.upstream import client as upstream

SandboxId = Annotated[str, Flag(metavar="SANDBOX_ID")]

_show = Facts(hidden={"audit_head", "lent_at", "due", "held_by", "held_until", "history"}, empty=(None, "", 0, [], {}))


@command("--as olga@example.com --track track-123 --duration 2h", show=_show)
def allocate_sandbox(
    *,
    track: Annotated[str, Flag("who gets it", "TRACK")],
    key: Annotated[str | None, Flag("the idempotency key (default: the track)", "KEY")] = None,
    name_prefix: Annotated[str, Flag("only a sandbox whose name begins so", "TEXT")] = "",
    duration: Annotated[int | None, Flag("like 30m or 2h (default, and at most: the lab's duration)", "D", read_duration)] = None,
    actor: Actor,
    now: datetime,
) -> Document:
    """Lend a free sandbox to a track. The same key gives the same sandbox until it is given back. Operators may."""
    queries.may_operate(actor=actor).require()
    key = track if key is None else key
    taken = operations.take(key=key, track=track, name_prefix=name_prefix, duration_seconds=duration, actor=actor, now=now)
    return document_of(taken.sandbox) | {"is_repeat": taken.is_repeat}


@command("3f0c6a52-5d0e-5c8f-9a57-0a7c1f6d2b11 --as olga@example.com --track track-123", one_of=("track", "reason"))
def release_sandbox(
    sandbox_id: SandboxId,
    *,
    track: Annotated[str | None, Flag("the track that gives it back", "TRACK")] = None,
    reason: Annotated[str | None, Flag("end whoever's allocation it is; kept in the history", "TEXT")] = None,
    fence: Annotated[int | None, Flag("only this hand-over: one that was lent anew since is left alone", "N", read_whole_number)] = None,
    actor: Actor,
    now: datetime,
) -> object:
    """Give a sandbox back: for its track, or for whoever has it, with a reason. It is cleaned before anybody gets it. Operators may."""
    queries.may_operate(actor=actor).require()
    if track is None:
        return operations.release_by_operator(sandbox_id=sandbox_id, reason=reason or "", fence=fence, actor=actor, now=now)
    return operations.release(sandbox_id=sandbox_id, track=track, fence=fence, actor=actor, now=now)


@command("--limit 100 --json", show=show_report)
def clean_sandboxes(
    *, limit: Annotated[int, Flag("at most so many in this run (default: 500)", "N", read_whole_number)] = 500, clock: Clock
) -> Outcome:
    """Delete at the provider what was given back and is due, and lend again what is ready, as the worker does every minute."""
    report = operations.clean(provider=upstream.provider(), clock=clock, limit=limit)
    problem = failed(report.failures, "sandboxes failed", one="sandbox failed", then="; the worker tries again, with growing gaps.")
    return Outcome(report, report.stopped or problem)


@command("--json", show=show_report)
def expire_sandboxes(*, clock: Clock) -> Outcome:
    """Take back every sandbox whose time is over, grace included, as the worker does every minute."""
    report = operations.expire(clock=clock)
    return Outcome(
        report,
        failed(report.failures, "sandboxes failed", one="sandbox failed", then="; the next run tries again."),
    )


@command("--dry-run", show=show_report)
def sync_sandboxes(
    *,
    dry_run: Annotated[bool, Flag("show what would change, and change nothing")] = False,
    most_share: Annotated[
        float, Flag("stop when more than this share of the pool would go stale (default: 0.2)", "SHARE", type=share)
    ] = MOST_SHARE,
    clock: Clock,
) -> Outcome:
    """Hold the pool against the provider's whole list: new sandboxes come in, those missing for the second time go stale.
    Stops and changes nothing when too much would go at once."""
    try:
        plan = operations.sync(provider=upstream.provider(), apply=not dry_run, most_share=most_share, clock=clock)
    except SyncStopped as stopped:
        return Outcome(document_of(stopped.plan) | {"stopped": stopped.message}, stopped.message)
    return Outcome(plan, failed(plan.failures, "sandboxes failed", one="sandbox failed", then="; the next run tries again."))


_LISTING = Listing(
    "sandboxes",
    {
        "sandbox": "sandbox_id",
        "name": "name",
        "status": "status",
        "track": "track",
        "fence": "fence",
        "until": moment("expires_at"),
        "problem": lambda row: row["quarantine_reason"] or row["clean_error"],
    },
)


@command("--status allocated --json", show=_LISTING, at_most_one_of=("status", "track"))
def list_sandboxes(
    *,
    status: Annotated[Status | None, Flag("longest lent first", "S")] = None,
    track: Annotated[str | None, Flag("what a track holds, and held last; newest first", "TRACK")] = None,
    limit: Limit = 200,
) -> Outcome:
    """List sandboxes: those in a status, or those of a track. Without a choice: what is lent, being cleaned, stale or in quarantine."""
    lists: list[Callable[[str | None], Page[Sandbox | Unreadable]]]
    if track is not None:
        lists = [lambda cursor: queries.list_of_track(track=track, cursor=cursor)]
    else:
        wanted = [status] if status else [one for one in Status if one is not Status.AVAILABLE]
        lists = [partial(_by_status, one) for one in wanted]
    found, has_more = first(limit, *lists)
    unreadable = [one.sandbox_id for one in found if isinstance(one, Unreadable)]
    document = {"sandboxes": [one for one in found if isinstance(one, Sandbox)], "has_more": has_more, "unreadable": unreadable}
    return Outcome(document, f"These rows can't be read: {', '.join(unreadable)}" if unreadable else "")


def _by_status(status: Status, cursor: str | None) -> Page[Sandbox | Unreadable]:
    return queries.list_by_status(status=status, cursor=cursor)


@command("3f0c6a52-5d0e-5c8f-9a57-0a7c1f6d2b11", show=with_history(_show))
def show_sandbox(sandbox_id: SandboxId, *, now: datetime) -> Document:
    """Show one sandbox: how it stands and why, and every holder that it ever had."""
    document = document_of(queries.get(sandbox_id=sandbox_id))
    document["explanation"] = queries.explain(sandbox_id=sandbox_id, now=now)
    return document | {"history": list(queries.history(sandbox_id=sandbox_id))}


def _read_receipts(name: str, flag: str) -> list[ledger.Receipt]:
    try:
        lines = Path(name).read_text().splitlines()
    except (OSError, UnicodeDecodeError) as error:
        raise BadUsage(f"{name} can't be read: {error}", flag=flag, code="file_unreadable") from error
    return ledger.read_receipts(lines)


def _show_verdict(document: Document, console: Console) -> None:
    for one in document["problems"]:
        say(console, f"{one['kind']}: {one['sandbox_id'] or 'the pool'}: {one['words']}")
    sandboxes, receipts = counted(document["sandboxes"], "sandbox", "sandboxes"), counted(document["receipts"], "receipt", "receipts")
    console.print(f"{sandboxes}, {receipts}, {counted(len(document['problems']), 'problem', 'problems')}.")


@command("--receipts receipts.jsonl --json", show=_show_verdict)
def verify_sandboxes(
    *,
    receipts: Annotated[list[ledger.Receipt] | None, Flag("what clients were told, one JSON object a line", "FILE", _read_receipts)] = None,
    slack: Annotated[int, Flag("how far the clients' clocks may be wrong (default: 2s)", "D", read_duration)] = 2,
) -> Outcome:
    """Check the ledger of the pool: every hand-over by its events, against what the provider shows, and against the receipts of
    clients if there are any. Reports two holders at once, hand-overs without event, what one side alone knows of, what the provider
    has reset since, and rows that can't be read. Exit code 1 when there is one."""
    given = receipts or []
    with terminal.progress() as progress:
        bar = progress.add_task("Sandboxes", total=None)
        verdict = queries.verify(
            receipts=given,
            slack_seconds=slack,
            provider=upstream.provider() if upstream.is_set() else None,
            progress=lambda: progress.advance(bar),
        )
    document = document_of(verdict) | {"receipts": len(given)}
    return Outcome(document, failed(verdict.problems, "problems in the ledger of the pool.", one="problem in the ledger of the pool."))
