"""The pool of sandboxes: each one with its whole history of holders, what may be done with it by hand, and the runs on order."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime
from functools import partial
from typing import Any

from accessportal.access_requests.queries import ApproverBook
from accessportal.audit import queries as audit
from accessportal.audit.states import AuditEvent
from accessportal.console.resource import Ask, Column, Parameter, Pattern, Resource, Row, Section
from accessportal.kernel.actors import Actor, fold_email
from accessportal.kernel.decisions import Decision, refuse
from accessportal.kernel.errors import NotFound
from accessportal.kernel.pages import Page
from accessportal.sandboxes import operations, policy, queries
from accessportal.sandboxes.states import PEOPLES_TRACKS, Run, Sandbox, Status, Unreadable
from accessportal.upstream import client as upstream
from accessportal.web.deeds import Data, Deed, Told
from accessportal.web.events import latest_of
from accessportal.web.exporting import exported
from accessportal.web.forms import ReasonForm
from accessportal.web.presenting import holder

# Some hundred hand-overs; older ones are on the page of its history.
_HOLDERS_FROM = 500
_WRONG_STATUS = "sandbox_moved_on"
_RESTORABLE = frozenset({Status.STALE, Status.QUARANTINED})
# Each in the colour that it has in the drawing of the pool, too (static/portal/portal.css).
WORDS = {
    Status.AVAILABLE: ("Free", "live"),
    Status.ALLOCATED: ("Lent", "held"),
    Status.PENDING_DELETION: ("Being cleaned", "wait"),
    Status.STALE: ("Stale", "done"),
    Status.QUARANTINED: ("In quarantine", "stop"),
}
_IN_FILES = (
    "name",
    "status",
    "track",
    "fence",
    "allocated_at",
    "expires_at",
    "lab_duration_hours",
    "created_at",
    "last_released_by",
    "last_released_at",
    "quarantine_reason",
    "clean_error",
    "missing_since",
)
_ENDS = {
    "sandbox.released": "given back",
    "sandbox.expired": "taken back, its time was over",
    "sandbox.quarantined": "put in quarantine",
}
_EMPTY = {
    Status.AVAILABLE: ("No sandbox is free", "Those being cleaned come next; new ones come in with the next sync."),
    Status.ALLOCATED: ("No sandbox is lent", "Whoever takes one stands here, longest lent first."),
    Status.PENDING_DELETION: ("Nothing is being cleaned", "What is given back is cleaned before anybody else gets it."),
    Status.STALE: ("No sandbox is stale", "Those that the provider no longer lists, or lists as not ready, stand here."),
    Status.QUARANTINED: ("Nothing is in quarantine", "What cleaning can’t cure, or an operator keeps out of use, stands here."),
}


@dataclass(frozen=True, slots=True)
class Holding:
    """One hand-over: who had it, by which fence, from when, and how it ended (``ended_at`` ``None``: it has not)."""

    fence: int
    track: str
    began_at: datetime
    ended_at: datetime | None = None
    how: str = ""
    by: str = ""
    reason: str = ""
    is_foreign: bool = False


def holdings_of(events: Iterable[AuditEvent]) -> list[Holding]:
    """Every hand-over that the events tell of, newest first; ``events`` are oldest first, and may begin in the middle."""
    found: list[Holding] = []
    for event in events:
        if event.action in {"sandbox.taken", "sandbox.adopted", "sandbox.revived"} and event.data.get("track"):
            found.append(Holding(event.data["fence"], event.data["track"], event.at, is_foreign=event.action == "sandbox.adopted"))
        elif event.action in _ENDS and event.data.get("track"):
            last = found[-1] if found else None
            if last is not None and last.ended_at is None:
                found[-1] = _ended(last, event)
            elif last is None or last.fence != event.data["fence"]:
                # Another program lent it and took it back between two looks: only the end was seen.
                found.append(_ended(Holding(event.data["fence"], event.data["track"], event.at), event))
    return found[::-1]


def _ended(began: Holding, event: AuditEvent) -> Holding:
    reason = str(event.data.get("reason", ""))
    # Who gives back needs no reason; an operator who takes back does.
    is_taken = event.action == "sandbox.released" and reason
    return Holding(
        fence=began.fence,
        track=began.track,
        began_at=began.began_at,
        ended_at=event.at,
        how="taken back" if is_taken else _ENDS[event.action],
        by=event.actor,
        reason=reason,
        is_foreign=began.is_foreign or bool(event.data.get("is_outside")),
    )


def _status_pattern(status: Status) -> Pattern:
    title, hint = _EMPTY[status]
    return Pattern(
        name=status.value,
        label=WORDS[status][0],
        fetch=lambda ask: queries.list_by_status(status=status, **ask.part),
        bulk=("restore",) if status in _RESTORABLE else (),
        empty_title=title,
        empty_hint=hint,
    )


def _offered(statuses: frozenset[Status], sandbox: Sandbox, actor: Actor, now: datetime) -> Decision:
    decision = queries.may_operate(actor=actor)
    if decision.allowed and sandbox.status not in statuses:
        return refuse(f"{sandbox.name} is not in a state for this any more: it is {WORDS[sandbox.status][0].lower()}.", code=_WRONG_STATUS)
    return decision


def _is_operator(actor: Actor, _book: ApproverBook) -> bool:
    return queries.may_operate(actor=actor).allowed


def _restore(sandbox: Sandbox, _data: Data, actor: Actor, now: datetime) -> Told:
    operations.restore(sandbox_id=sandbox.sandbox_id, actor=actor, now=now)
    return Told(f"{sandbox.name} is to be cleaned, and free after that.")


def _quarantine(sandbox: Sandbox, data: Data, actor: Actor, now: datetime) -> Told:
    operations.quarantine(sandbox_id=sandbox.sandbox_id, reason=data["reason"], fence=sandbox.fence_held, actor=actor, now=now)
    return Told(f"{sandbox.name} is in quarantine: nobody gets it.")


def _release(sandbox: Sandbox, data: Data, actor: Actor, now: datetime) -> Told:
    fence = sandbox.fence_held
    released = operations.release_by_operator(sandbox_id=sandbox.sandbox_id, reason=data["reason"], fence=fence, actor=actor, now=now)
    return Told(f"{sandbox.name} was taken from {holder(released.track)}, and is being cleaned.")


def _whose(sandbox: Sandbox) -> str:
    """Which hand-over it is at. Two allocations of another program have one fence until a program of ours meets the second."""
    holder = f", {sandbox.track} since {sandbox.allocated_at}" if sandbox.status is Status.ALLOCATED else ""
    return f"{sandbox.fence_held}{holder}"


def _quarantine_words(sandbox: Sandbox) -> str:
    loses = f" {holder(sandbox.track)} loses it at once, with all that is in it." if sandbox.status is Status.ALLOCATED else ""
    return f"Nobody gets {sandbox.name} until it is restored.{loses}"


def _restore_words(sandbox: Sandbox) -> str:
    why = f" Why it is in quarantine: {sandbox.quarantine_reason}" if sandbox.quarantine_reason else ""
    return f"{sandbox.name} is cleaned once more; then it is free, or leaves the pool if the provider has it no longer.{why}"


RELEASE: Deed[Sandbox] = Deed(
    name="release",
    label="Take back",
    question=lambda sandbox: f"Take {sandbox.name} back?",
    explain=lambda sandbox: f"{holder(sandbox.track)} loses {sandbox.name} at once; it is cleaned, and then others get it.",
    may=partial(_offered, frozenset({Status.ALLOCATED})),
    run=_release,
    form=partial(ReasonForm, is_required=True, label="Reason (kept in the history)"),
    is_for=_is_operator,
    stale_codes=frozenset({_WRONG_STATUS}),
    stands_on=_whose,
    is_destructive=True,
)
QUARANTINE: Deed[Sandbox] = Deed(
    name="quarantine",
    label="Quarantine",
    question=lambda sandbox: f"Put {sandbox.name} in quarantine?",
    explain=_quarantine_words,
    may=partial(_offered, frozenset(Status) - {Status.QUARANTINED}),
    run=_quarantine,
    form=partial(ReasonForm, is_required=True, label="Reason (kept in the history, shown on its page)"),
    is_for=_is_operator,
    stale_codes=frozenset({_WRONG_STATUS}),
    stands_on=_whose,
    is_destructive=True,
)
RESTORE: Deed[Sandbox] = Deed(
    name="restore",
    label="Restore",
    question=lambda sandbox: f"Restore {sandbox.name}?",
    explain=_restore_words,
    may=partial(_offered, _RESTORABLE),
    run=_restore,
    is_for=_is_operator,
    stale_codes=frozenset({_WRONG_STATUS}),
    stands_on=lambda sandbox: f"{sandbox.status}: {sandbox.quarantine_reason}",
    is_bulk=True,
)


def _row(one: Sandbox | Unreadable) -> Row:
    return Row(one.sandbox_id, one, WORDS[one.status]) if isinstance(one, Sandbox) else Row("", one, ("Unreadable", "stop"))


def _readable(name: str, one: Sandbox | Unreadable) -> Any:
    return getattr(one, name) if isinstance(one, Sandbox) else "unreadable" if name == "status" else None


def _track(text: str) -> str:
    """People are tracks, too, by their bare address; a program's name of a track may hold one."""
    return f"{PEOPLES_TRACKS}{fold_email(text)}" if "@" in text and ":" not in text else text


class Sandboxes(Resource):
    name = "sandboxes"
    singular = "sandbox"
    plural = "Sandboxes"
    icon = "box"
    about = "The pool: what is free, lent, being cleaned or out of use, who had each sandbox when, and why it is as it is."
    notice_template = "console/sandboxes/pool.html"
    headline_template = "console/sandboxes/headline.html"
    columns = (
        Column("Sandbox", "console/cells/sandbox_name.html", "col-who"),
        Column("Holder", "console/cells/sandbox_holder.html", "col-what"),
        Column("State", "console/cells/sandbox_state.html", "col-state"),
        Column("What is in the way", "console/cells/sandbox_trouble.html", "col-context"),
    )
    file_columns = exported("sandbox_id", "external_id", *((name, partial(_readable, name)) for name in _IN_FILES))
    patterns = (
        _status_pattern(Status.ALLOCATED),
        _status_pattern(Status.AVAILABLE),
        _status_pattern(Status.PENDING_DELETION),
        _status_pattern(Status.STALE),
        _status_pattern(Status.QUARANTINED),
        Pattern(
            name="unreadable",
            label="Unreadable",
            fetch=lambda ask: Page(items=queries.unreadable()),
            empty_title="Every row can be read",
            empty_hint="Rows into which another program wrote what makes no sense stand here, as the last count found them.",
            columns=(
                Column("Sandbox", "console/cells/sandbox_name.html", "col-who"),
                Column("What to do", "console/cells/sandbox_unreadable.html", "col-context"),
            ),
        ),
        Pattern(
            name="track",
            label="Of a track",
            fetch=lambda ask: queries.list_of_track(track=_track(ask.parameter), **ask.part),
            parameter=Parameter("The holder", "alice@example.com"),
            empty_title="This track holds nothing",
            empty_hint="What a track held once, and others got since, is told by each sandbox’s own history.",
        ),
    )
    sections = (
        Section("Why it is so", "console/sandboxes/words.html"),
        Section("Allocation", "console/sandboxes/allocation.html"),
        Section("Holders", "console/sandboxes/holders.html"),
        Section("What happened", "web/latest_events.html"),
        Section("Cleaning", "console/sandboxes/cleaning.html", is_aside=True),
        Section("At the provider", "console/sandboxes/upstream.html", is_aside=True),
        Section("Facts", "console/sandboxes/facts.html", is_aside=True),
    )
    deeds = (RELEASE, QUARANTINE, RESTORE)

    def read(self, key: str, actor: Actor, now: datetime) -> Sandbox:
        return queries.get(sandbox_id=key)

    def notice(self, pattern: Pattern, ask: Ask) -> dict[str, Any]:
        stats = queries.stats()
        return {
            "stats": stats,
            "tiles": [(words, tone, stats.counts.get(status, 0), status.value) for status, (words, tone) in WORDS.items()] if stats else [],
            "sync": queries.last_sync(),
            "next_return_at": queries.next_return_at(now=ask.now) if stats and not stats.counts.get(Status.AVAILABLE, 0) else None,
            "has_provider": upstream.is_set(),
            "runs": queries.open_runs().items,
            "may_operate": queries.may_operate(actor=ask.actor).allowed,
            "now": ask.now,
        }

    def rows(self, items: Sequence[Sandbox | Unreadable], ask: Ask) -> list[Row]:
        return [_row(one) for one in items]

    def details(self, record: Sandbox, ask: Ask) -> dict[str, Any]:
        newest = audit.history(record.entity, limit=_HOLDERS_FROM)
        return {
            "word": WORDS[record.status],
            "words": queries.explain(sandbox_id=record.sandbox_id, now=ask.now),
            "holdings": holdings_of(newest.items[::-1]),
            "has_older": newest.next_cursor is not None,
            **latest_of(record),
            "most_failures": policy.MOST_FAILURES,
        }


class SandboxRuns(Resource):
    name = "sandbox-runs"
    singular = "pool run"
    plural = "Pool runs"
    icon = "refresh-cw"
    about = "Syncs and cleanups of the pool that somebody ordered: who, when, and what came of each."
    notice_template = "console/sandboxes/order.html"
    columns = (
        Column("Run", "console/cells/run_name.html", "col-who"),
        Column("State", "console/cells/run_state.html", "col-state"),
        Column("What it did", "console/cells/run_report.html", "col-what"),
    )
    file_columns = exported("run_id", "kind", "state", "ordered_by", "ordered_at", "started_at", "ended_at", "report", "error")
    patterns = (
        Pattern(
            name="ended",
            label="Ended",
            fetch=lambda ask: queries.ended_runs(**ask.part),
            empty_title="No run has ended in the last week",
            empty_hint="Runs that operators or programs order stand here for a week. The jobs run by themselves besides.",
        ),
        Pattern(
            name="open",
            label="Under way",
            fetch=lambda ask: queries.open_runs(**ask.part),
            empty_title="No run is under way",
            empty_hint="A run that was ordered stands here until it has ended.",
        ),
    )

    def read(self, key: str, actor: Actor, now: datetime) -> Any:
        raise NotFound("Runs have no page of their own; the list says all.", code="no_detail")

    def notice(self, pattern: Pattern, ask: Ask) -> dict[str, Any]:
        return {"may_operate": queries.may_operate(actor=ask.actor).allowed}

    def rows(self, items: Sequence[Run], ask: Ask) -> list[Row]:
        return [Row("", run, {name: value for name, value in run.report.items() if value}) for run in items]
