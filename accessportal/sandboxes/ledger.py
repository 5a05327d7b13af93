"""The ledger: what clients say they held, against what the events say was lent. Pure, and able to fail.

A client's receipt is one JSON object a line:

    {"kind": "taken", "sandbox_id": "…", "fence": 3, "track": "…", "key": "…", "asked_at": 1759567084.1, "answered_at": 1759567084.2}
    {"kind": "released", "sandbox_id": "…", "fence": 3, "track": "…", "asked_at": 1759567090.0, "answered_at": 1759567090.1}
    {"kind": "none", "track": "…", "asked_at": 1759567091.0, "answered_at": 1759567091.1}

Times are epoch seconds by the client's clock, right before the request was sent and right after its answer came.
"""

from __future__ import annotations

import itertools
import json
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from accessportal.audit.states import AuditEvent
from accessportal.kernel.errors import InvalidRequest
from accessportal.sandboxes.states import Sandbox, Status, Unreadable

_HOLDS = frozenset({"sandbox.taken", "sandbox.adopted", "sandbox.revived"})
_ENDS = frozenset({"sandbox.released", "sandbox.expired", "sandbox.quarantined"})
_MOVES = frozenset({"sandbox.prolonged", "sandbox.shortened"})
_NOTES = frozenset({"sandbox.clean_failed"}) | _MOVES
_RAISED = "sandbox.fence_raised"
_FOREVER = float("inf")
Span = tuple[float, float]


@dataclass(frozen=True, slots=True)
class Receipt:
    """What one client was told. ``sandbox_id``, ``fence`` and ``key`` are empty where the answer had none."""

    kind: str
    track: str
    asked_at: float
    answered_at: float
    sandbox_id: str = ""
    fence: int = 0
    key: str = ""


@dataclass(frozen=True, slots=True)
class Problem:
    """``kind``: ``overlap`` (two holders at once), ``gap`` (a hand-over without event), ``orphan`` (one side alone knows of it),
    ``refused`` (a client was told that none is free while one was), ``unreadable`` (its row can't be judged), ``behind`` (the provider
    has reset it since, so there was a hand-over that the tables don't know)."""

    kind: str
    sandbox_id: str
    words: str


def read_receipts(lines: Iterable[str]) -> list[Receipt]:
    """:raises InvalidRequest: naming the first line that is no receipt."""
    found = []
    for number, line in enumerate(lines, start=1):
        if line.strip():
            try:
                found.append(_receipt(json.loads(line)))
            except (KeyError, TypeError, ValueError) as error:
                message = f"Line {number} is no receipt ({error}). See docs/subsystems/sandboxes.md for their form."
                raise InvalidRequest(message, code="receipt_unreadable", field="--receipts") from error
    return found


def _receipt(row: Mapping[str, Any]) -> Receipt:
    kind = row["kind"]
    if kind not in {"taken", "released", "none"}:
        raise ValueError(f"kind {kind!r} is not taken, released or none")
    held = {} if kind == "none" else {"sandbox_id": str(row["sandbox_id"]), "fence": int(row["fence"])}
    times = {name: float(row[name]) for name in ("asked_at", "answered_at")}
    return Receipt(kind=kind, track=str(row["track"]), key=str(row.get("key", "")), **held, **times)  # type: ignore[arg-type]


def problems_of_events(events: Sequence[AuditEvent], row: Sandbox | Unreadable | None) -> Iterator[Problem]:
    """What is wrong with the hand-overs of one sandbox by its own events, oldest first, and its row (``None``: it left)."""
    fence, holder = 0, ""
    sandbox_id = events[0].entity.partition("#")[2] if events else row.sandbox_id if row else ""
    for event in events:
        told = int(event.data.get("fence", 0))
        if event.action == _RAISED and told > fence:
            # After a restore of the tables; whoever holds it goes on, at the new fence.
            fence, holder = told, holder and f"{event.data['track']} (fence {told})"
            continue
        is_new = event.action == "sandbox.taken" or (told == fence + 1 and _is_outside(event))
        if told != fence + (1 if is_new else 0):
            yield Problem("gap", sandbox_id, f"event {event.sequence} ({event.action}) has fence {told} after {fence}")
        if event.action == "sandbox.taken" and holder:
            yield Problem("overlap", sandbox_id, f"lent to {event.data['track']} (fence {told}) while {holder} had it")
        if event.action in _MOVES and not holder:
            yield Problem("orphan", sandbox_id, f"event {event.sequence} ({event.action}) moves the end while nobody had it")
        fence = told
        if event.action in _HOLDS and event.data.get("status") == Status.ALLOCATED:
            holder = f"{event.data['track']} (fence {told})"
        elif event.action not in _NOTES:
            holder = ""
    yield from _problems_of_row(sandbox_id, fence, holder, row)


def _is_outside(event: AuditEvent) -> bool:
    """Another program made this hand-over; the event is our note of it."""
    return event.action == "sandbox.adopted" or bool(event.data.get("is_outside"))


def _problems_of_row(sandbox_id: str, fence: int, holder: str, row: Sandbox | Unreadable | None) -> Iterator[Problem]:
    if isinstance(row, Unreadable):
        yield Problem(
            "unreadable",
            sandbox_id,
            "its row can't be read: another program has changed it (mend it by hand), or a newer version of the portal has",
        )
        return
    if row is None:
        if holder:
            yield Problem("orphan", sandbox_id, f"left the pool while {holder} had it")
        return
    if not row.version:
        # Another program made it anew, and no program of ours has met it since: it has neither fence nor events of its own.
        return
    is_ours = row.status is Status.ALLOCATED and not row.is_foreign
    if is_ours and not holder:
        yield Problem("orphan", sandbox_id, f"lent to {row.track} (fence {row.fence}) without an event")
    if holder and row.status is not Status.ALLOCATED and row.due is not None:
        # Marked by another program, and noted by ours only at the next sync.
        return
    if holder and row.status is not Status.ALLOCATED:
        yield Problem("orphan", sandbox_id, f"the events say that {holder} has it, the row says {row.status}")
    if row.fence != fence:
        yield Problem("gap", sandbox_id, f"the row has fence {row.fence}, the last event {fence}")


def problems_of_receipts(
    receipts: Sequence[Receipt], histories: Mapping[str, Sequence[AuditEvent]], *, slack_seconds: float
) -> Iterator[Problem]:
    """Find what the clients' receipts show to be wrong, by themselves and against the events. ``slack_seconds``: how far clocks may
    differ."""
    yield from _two_holders_of_one_fence(receipts)
    yield from _overlaps(receipts, histories, slack_seconds)
    yield from _unknown_to_events(receipts, histories)
    free = [span for events in histories.values() for span in free_spans(events, slack_seconds)]
    yield from refused_while_free([receipt for receipt in receipts if receipt.kind == "none"], free)


def _two_holders_of_one_fence(receipts: Sequence[Receipt]) -> Iterator[Problem]:
    holders: dict[tuple[str, int], set[tuple[str, str]]] = defaultdict(set)
    for receipt in receipts:
        if receipt.kind == "taken":
            holders[receipt.sandbox_id, receipt.fence].add((receipt.track, receipt.key))
    for (sandbox_id, fence), found in holders.items():
        if len(found) > 1:
            tracks = " and ".join(sorted(track for track, _ in found))
            yield Problem("overlap", sandbox_id, f"fence {fence} was given to {tracks}")


def _overlaps(receipts: Sequence[Receipt], histories: Mapping[str, Sequence[AuditEvent]], slack: float) -> Iterator[Problem]:
    """Two clients were both sure to hold one sandbox: each from its answer until it asked to give it back."""
    for sandbox_id, spans in _held(receipts, histories).items():
        for (_, end, fence), (start, _, later) in itertools.pairwise(sorted(spans)):
            if start + slack < end - slack and fence != later:
                yield Problem("overlap", sandbox_id, f"fence {later} was answered {end - start:.3f} s before fence {fence} was given back")


def _held(receipts: Sequence[Receipt], histories: Mapping[str, Sequence[AuditEvent]]) -> dict[str, list[tuple[float, float, int]]]:
    given_back = {(one.sandbox_id, one.fence): one.asked_at for one in reversed(receipts) if one.kind == "released"}
    first: dict[tuple[str, int], float] = {}
    for one in receipts:
        if one.kind == "taken":
            first.setdefault((one.sandbox_id, one.fence), one.answered_at)
    held: dict[str, list[tuple[float, float, int]]] = defaultdict(list)
    for (sandbox_id, fence), start in first.items():
        end = given_back.get((sandbox_id, fence), _end_by_events(histories.get(sandbox_id, ()), fence))
        held[sandbox_id].append((start, end, fence))
    return held


def _end_by_events(events: Sequence[AuditEvent], fence: int) -> float:
    ends = (
        event.at.timestamp()
        for event in events
        if (event.action in _ENDS and event.data.get("fence") == fence) or (event.action == _RAISED and event.data["fence"] > fence)
    )
    return next(ends, _FOREVER)


def _unknown_to_events(receipts: Sequence[Receipt], histories: Mapping[str, Sequence[AuditEvent]]) -> Iterator[Problem]:
    lent = {
        (sandbox_id, event.data["fence"]): event.data["track"]
        for sandbox_id, events in histories.items()
        for event in events
        if event.action in _HOLDS
    }
    for receipt in receipts:
        if receipt.kind == "none":
            continue
        track = lent.get((receipt.sandbox_id, receipt.fence))
        if track != receipt.track:
            told = "no event tells of it" if track is None else f"the event names {track}"
            words = f"{receipt.track} says {receipt.kind} with fence {receipt.fence}, but {told}"
            yield Problem("orphan", receipt.sandbox_id, words)


def free_spans(events: Sequence[AuditEvent], slack_seconds: float) -> Iterator[Span]:
    """When the sandbox was surely free: an event's time is that of the decision, a moment before it was written."""
    since: float | None = None
    for event in events:
        at = event.at.timestamp()
        is_free = event.data.get("status") == Status.AVAILABLE
        if since is not None and not is_free and "status" in event.data:
            yield since + slack_seconds, at
        since = at if is_free else None if "status" in event.data or event.action == "sandbox.removed" else since
    if since is not None:
        yield since + slack_seconds, _FOREVER


def refused_while_free(nones: Iterable[Receipt], free: Iterable[Span]) -> Iterator[Problem]:
    """A "none" is right when there was a moment between question and answer at which none was surely free."""
    covered = _merged(free)
    for receipt in nones:
        for start, end in covered:
            if start <= receipt.asked_at and receipt.answered_at <= end:
                yield Problem("refused", "", f"{receipt.track} was told that none is free at {receipt.answered_at:.3f}, but one was")
                break


def _merged(spans: Iterable[Span]) -> list[Span]:
    merged: list[Span] = []
    for start, end in sorted(span for span in spans if span[0] < span[1]):
        if merged and start <= merged[-1][1]:
            merged[-1] = (merged[-1][0], max(merged[-1][1], end))
        else:
            merged.append((start, end))
    return merged
