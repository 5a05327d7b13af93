"""Pages: the seed's indexes, what is due, and the free list."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime
from functools import partial

from pynamodb.expressions.condition import Condition

from accessportal.kernel.clock import to_epoch
from accessportal.kernel.pages import Page, every
from accessportal.sandboxes import models
from accessportal.sandboxes.models import SandboxItem
from accessportal.sandboxes.states import Due, Sandbox, Status, Unreadable
from accessportal.sandboxes.store.converting import FreeEntry, free_entry_of, precise, record_of, unreadable
from accessportal.store.reading import query_page

_BIG_PAGE = 200


def page_by_status(
    status: Status, *, cursor: str | None, limit: int, allocated_until: datetime | None = None
) -> Page[Sandbox | Unreadable]:
    """The seed's StatusIndex; ``allocated_until`` keeps to those allocated not later."""
    condition = None if allocated_until is None else SandboxItem.allocated_at <= to_epoch(allocated_until)
    return query_page(
        SandboxItem,
        status.value,
        index=SandboxItem.status_index,
        pattern=f"sandboxes.by_status:{status}:{allocated_until}",
        convert=record_of,
        unreadable=unreadable,
        cursor=cursor,
        limit=limit,
        range_condition=condition,
    )


def every_row() -> Iterator[Sandbox | Unreadable]:
    """The whole pool by its statuses. One that changes its status meanwhile may come twice, or not at all."""
    for status in Status:
        yield from every(partial(_big_page, status))


def _big_page(status: Status, cursor: str | None) -> Page[Sandbox | Unreadable]:
    return page_by_status(status, cursor=cursor, limit=_BIG_PAGE)


def page_of_track(track: str, *, cursor: str | None, limit: int) -> Page[Sandbox | Unreadable]:
    """The seed's TrackIndex, newest allocation first."""
    return query_page(
        SandboxItem,
        track,
        index=SandboxItem.track_index,
        pattern=f"sandboxes.of_track:{track}",
        convert=record_of,
        unreadable=unreadable,
        cursor=cursor,
        limit=limit,
        newest_first=True,
    )


def page_of_key(key: str, *, cursor: str | None, limit: int) -> Page[Sandbox | Unreadable]:
    """The seed's IdempotencyIndex, newest allocation first."""
    return query_page(
        SandboxItem,
        key,
        index=SandboxItem.idempotency_index,
        pattern=f"sandboxes.of_key:{key}",
        convert=record_of,
        unreadable=unreadable,
        cursor=cursor,
        limit=limit,
        newest_first=True,
    )


def page_due(
    due: Due, *, until: datetime | None = None, beyond: datetime | None = None, cursor: str | None, limit: int
) -> Page[Sandbox | Unreadable]:
    """What a job must do, earliest first; only what is due by ``until``, or only what lies after ``beyond``."""
    return query_page(
        SandboxItem,
        due.value,
        index=SandboxItem.due_index,
        pattern=f"sandboxes.due:{due}:{beyond is not None}",
        convert=record_of,
        unreadable=unreadable,
        cursor=cursor,
        limit=limit,
        range_condition=due_within(until, beyond),
    )


def due_within(until: datetime | None, beyond: datetime | None) -> Condition | None:
    """The condition of an index by ``due_at``: not after ``until``, or after ``beyond``."""
    if until is not None:
        return SandboxItem.due_at <= precise(until)
    return None if beyond is None else SandboxItem.due_at > precise(beyond)


def free_shards() -> range:
    """The partitions of the free list."""
    return range(models.FREE_SHARDS)


def page_free(shard: int, *, cursor: str | None, limit: int, after: str = "") -> Page[FreeEntry]:
    """One shard of the free list, strongly read, from the sandbox id ``after`` on."""
    return query_page(
        SandboxItem,
        models.free_pk(shard),
        pattern=f"sandboxes.free:{shard}:{after}",
        convert=free_entry_of,
        cursor=cursor,
        limit=limit,
        range_condition=SandboxItem.sk > models.sandbox_key(after)[0] if after else None,
        consistent=True,
    )
