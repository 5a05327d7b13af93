"""What the clients of :mod:`benchmarks.lending` were told, held against every event, every row and the provider's list."""

from __future__ import annotations

import json
import time
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

from accessportal.audit.states import AuditEvent
from accessportal.kernel.clock import SystemClock
from accessportal.kernel.errors import PortalError
from accessportal.kernel.pages import Page, every
from accessportal.sandboxes import ledger, operations, queries
from accessportal.sandboxes.ledger import Receipt, Span
from accessportal.sandboxes.states import Sandbox, Status, Unreadable
from accessportal.upstream.client import provider

# A killed cleaner holds a sandbox for two minutes, and one whose deletion failed a few times waits for as long.
_DRAIN_SECONDS = 600.0
Histories = Mapping[str, Sequence[AuditEvent]]


@dataclass(frozen=True, slots=True)
class Heard:
    """What all processes wrote down: calls, receipts and faults of the clients, and what the cleaners cleaned."""

    calls: tuple[dict[str, Any], ...]
    receipts: tuple[Receipt, ...]
    faults: tuple[str, ...]
    cleaned: Mapping[str, Sequence[float]]

    def count(self, kind: str) -> int:
        return sum(receipt.kind == kind for receipt in self.receipts)


def read(folder: Path) -> Heard:
    cleaned: dict[str, list[float]] = defaultdict(list)
    for row in _rows(folder, "cleaned"):
        cleaned[row["sandbox_id"]].append(row["at"])
    return Heard(
        calls=tuple(_rows(folder, "calls")),
        receipts=tuple(ledger.read_receipts(json.dumps(row) for row in _rows(folder, "receipts"))),
        faults=tuple(row["words"] for row in _rows(folder, "faults")),
        cleaned={sandbox_id: sorted(times) for sandbox_id, times in cleaned.items()},
    )


def _rows(folder: Path, kind: str) -> Iterator[dict[str, Any]]:
    for path in sorted(folder.glob(f"{kind}-*.jsonl")):
        for line in path.read_text().splitlines():
            try:
                yield json.loads(line)
            except ValueError:
                # A cleaner was killed in the middle of a line.
                if kind != "cleaned":
                    raise


def drain() -> float:
    """Everything that was given back is cleaned; how many seconds it took until nothing was left to do."""
    began, clock = time.monotonic(), SystemClock()
    while time.monotonic() - began < _DRAIN_SECONDS:
        try:
            operations.expire(clock=clock)
            operations.clean(provider=provider(), clock=clock, pace_seconds=0)
        except PortalError as error:
            print(f"while cleaning up: {error.code}: {error.message}", flush=True)
        if all(isinstance(row, Sandbox) and row.status is Status.AVAILABLE for row in every_row()):
            break
        time.sleep(1)
    return time.monotonic() - began


def every_row() -> list[Sandbox | Unreadable]:
    return [row for status in Status for row in every(partial(_page, status))]


def _page(status: Status, cursor: str | None) -> Page[Sandbox | Unreadable]:
    return queries.list_by_status(status=status, cursor=cursor, limit=200)


def problems(heard: Heard, *, pool: int, since: float, slack_seconds: float) -> Iterator[str]:
    """Everything that is wrong, in words. ``since``: when the whole pool was free; nothing is lent any more.

    ``slack_seconds``: at most so long after an event's time its change was written.
    """
    yield from heard.faults
    verdict = queries.verify(receipts=heard.receipts, slack_seconds=slack_seconds)
    yield from (f"{one.kind}: {one.sandbox_id or 'the pool'}: {one.words}" for one in verdict.problems)
    yield from _lost_sandboxes(every_row(), pool)
    histories = {row.sandbox_id: queries.history(sandbox_id=row.sandbox_id) for row in every_row()}
    yield from _lost_answers(heard.receipts, histories)
    nones = [receipt for receipt in heard.receipts if receipt.kind == "none"]
    yield from (one.words for one in ledger.refused_while_free(nones, free_spans(histories, heard.cleaned, since, slack_seconds)))


def _lost_sandboxes(rows: Sequence[Sandbox | Unreadable], pool: int) -> Iterator[str]:
    found = Counter(row.status.value if isinstance(row, Sandbox) else "unreadable" for row in rows)
    if found != {Status.AVAILABLE.value: pool}:
        yield f"lost: of {pool} sandboxes the pool has {dict(found)}"
    listed = {one.external_id for page in provider().list_sandboxes() for one in page if one.is_ready}
    known = {row.external_id for row in rows if isinstance(row, Sandbox)}
    if listed != known:
        yield f"lost: {len(listed - known)} are ready at the provider and not in the pool, {len(known - listed)} the other way round"


def _lost_answers(receipts: Sequence[Receipt], histories: Histories) -> Iterator[str]:
    """Each hand-over was answered to somebody, and each end was asked for."""
    for kind in ("taken", "released"):
        told = {(receipt.sandbox_id, receipt.fence) for receipt in receipts if receipt.kind == kind}
        done = {
            (sandbox_id, event.data["fence"])
            for sandbox_id, events in histories.items()
            for event in events
            if event.action == f"sandbox.{kind}"
        }
        yield from (f"lost: {sandbox_id} was {kind} (fence {fence}), and no client was told" for sandbox_id, fence in done - told)
        yield from (f"invented: a client was told that {sandbox_id} is {kind} (fence {fence})" for sandbox_id, fence in told - done)


def free_spans(histories: Histories, cleaned: Mapping[str, Sequence[float]], since: float, slack_seconds: float) -> Iterator[Span]:
    """When each sandbox was surely free: from when a cleaner knew that it had freed it to the decision to lend it.

    Tighter than the events alone: those tell when freeing it was decided, not when it was written. Where no cleaner lived to say
    when it knew, it was written ``slack_seconds`` later at the latest.
    """
    for sandbox_id, events in histories.items():
        start: float | None = since
        for event in events:
            at = event.at.timestamp()
            if event.action == "sandbox.taken" and start is not None and start < at:
                yield start, at
            if event.action == "sandbox.cleaned":
                known = next((moment for moment in cleaned.get(sandbox_id, ()) if moment >= at), at + slack_seconds)
                start = min(known, at + slack_seconds)
            elif event.action != "sandbox.added":
                start = None
        if start is not None:
            yield start, float("inf")


def quantile(values: Iterable[float], share: float) -> float:
    """The smallest value that ``share`` of them do not exceed."""
    ordered = sorted(values)
    return ordered[min(len(ordered) - 1, int(share * len(ordered)))]
