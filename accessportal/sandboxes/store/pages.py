"""Lists of rows: the seed's indexes, and what is due."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime
from functools import partial

from pynamodb.expressions.condition import Condition

from accessportal.kernel.clock import precise, to_epoch
from accessportal.kernel.pages import Page
from accessportal.sandboxes import models
from accessportal.sandboxes.models import SandboxItem
from accessportal.sandboxes.states import Due, Sandbox, Status, Unreadable
from accessportal.sandboxes.store.converting import record_of, unreadable
from accessportal.store.listing import Listing
from accessportal.store.reading import scan_records

_rows = partial(Listing[SandboxItem, Sandbox | Unreadable], model=SandboxItem, record=record_of, stand_in=unreadable)
_by_status = _rows("sandboxes.by_status", index=SandboxItem.status_index)
_due = _rows("sandboxes.due", index=SandboxItem.due_index)

of_track = _rows("sandboxes.of_track", index=SandboxItem.track_index, newest_first=True)
"""The seed's TrackIndex, newest allocation first."""
of_key = _rows("sandboxes.of_key", index=SandboxItem.idempotency_index, newest_first=True)
"""The seed's IdempotencyIndex, newest allocation first."""


def by_status(status: Status, *, cursor: str | None, limit: int, allocated_until: datetime | None = None) -> Page[Sandbox | Unreadable]:
    """The seed's StatusIndex; ``allocated_until`` keeps to those allocated not later."""
    where = None if allocated_until is None else SandboxItem.allocated_at <= to_epoch(allocated_until)
    return _by_status(status.value, cursor=cursor, limit=limit, where=where, bound=allocated_until)


def _sandbox(item: SandboxItem) -> Sandbox | None:
    return record_of(item) if models.is_sandbox_key(item.pk) else None


every_sandbox = partial(scan_records, SandboxItem, _sandbox)
"""The whole table, for checks: also what no index shows."""


def every_row() -> Iterator[Sandbox | Unreadable]:
    """The whole pool by its statuses. One that changes its status meanwhile may come twice, or not at all."""
    for status in Status:
        yield from _by_status.every(status.value)


def due(
    what: Due, *, until: datetime | None = None, beyond: datetime | None = None, cursor: str | None, limit: int
) -> Page[Sandbox | Unreadable]:
    """What a job must do, earliest first; only what is due by ``until``, or only what lies after ``beyond``."""
    return _due(what.value, cursor=cursor, limit=limit, where=due_within(until, beyond), bound=beyond is not None)


def due_within(until: datetime | None, beyond: datetime | None) -> Condition | None:
    """The condition of an index by ``due_at``: not after ``until``, or after ``beyond``."""
    if until is not None:
        return SandboxItem.due_at <= precise(until)
    return None if beyond is None else SandboxItem.due_at > precise(beyond)
