"""What parallel workers agree on: call slots at a steady pace, a limited number of seats, how far somebody watches, and names that never
come again.

One small table, ``Coordination`` (PK ``name``). Nothing here is a durable fact: losing the table costs a moment of pace, and lets
names come again.
"""

from __future__ import annotations

from datetime import datetime, timedelta

from pynamodb.attributes import NumberAttribute, UnicodeAttribute, UnicodeSetAttribute
from pynamodb.expressions.condition import size

from accessportal.kernel.clock import from_epoch
from accessportal.kernel.moments import furthest
from accessportal.store.base import PortalModel, register
from accessportal.store.transactions import Change, ConditionFailed, Guard, Upsert, update_one


@register
class CoordinationItem(PortalModel):
    """``next_at``/``until`` are epoch seconds with milliseconds; ``holders`` are whoever has a seat."""

    base_table_name = "Coordination"

    name = UnicodeAttribute(hash_key=True)
    next_at = NumberAttribute(null=True)
    holders = UnicodeSetAttribute(null=True)
    until = NumberAttribute(null=True)


def leave_watch(name: str, *, until: datetime, now: datetime) -> None:
    """Whoever watched until ``until`` watches no longer; nothing happens when somebody else watches by now."""
    mark = CoordinationItem.until
    try:
        update_one(Change(CoordinationItem, name, [mark.set(round(now.timestamp(), 3))], mark == round(until.timestamp(), 3)))
    except ConditionFailed:
        return


def reserve_slot(name: str, *, gap_seconds: float, longest_wait_seconds: float, now: datetime) -> datetime | None:
    """The moment at which the caller may make its one call, all callers together ``gap_seconds`` apart.

    ``None`` when the queue is longer than ``longest_wait_seconds``; then nothing is reserved. One write while others are
    calling, two at most when idle. Callers' clocks must agree to well under the gap times the burst they can afford. A queue
    that reaches further than it can was left by a clock that was wrong, and is begun anew.
    """
    now_at = round(now.timestamp(), 3)
    beyond = furthest(now, longest=timedelta(seconds=longest_wait_seconds + gap_seconds))
    queued = Change(
        CoordinationItem,
        name,
        [CoordinationItem.next_at.set(CoordinationItem.next_at + gap_seconds)],
        CoordinationItem.next_at.between(now_at, round(now_at + longest_wait_seconds, 3)),
    )
    first = Upsert(
        CoordinationItem,
        name,
        [CoordinationItem.next_at.set(round(now_at + gap_seconds, 3))],
        CoordinationItem.next_at.does_not_exist()
        | (CoordinationItem.next_at < now_at)
        | (CoordinationItem.next_at > round(beyond.timestamp(), 3)),
    )
    for step, is_queued in ((queued, True), (first, False), (queued, True)):
        try:
            item = update_one(step)
        except ConditionFailed:
            continue
        assert isinstance(item, CoordinationItem)
        return from_epoch(item.next_at - gap_seconds) if is_queued else now
    return None


def take_seat(name: str, *, holder: str, seats: int) -> Upsert:
    """The transaction step that gives ``holder`` one of ``seats``; its condition fails when all are taken.

    Taking it twice is harmless. It is freed by :func:`leave_seat` in the transaction that ends the need for it, so a crash
    never frees a seat that is in use nor keeps one that is not.
    """
    holders = CoordinationItem.holders
    free = holders.does_not_exist() | (size(holders) < seats) | holders.contains(holder)
    return Upsert(CoordinationItem, name, [holders.add({holder})], free)


def leave_seat(name: str, *, holder: str) -> Upsert:
    """The transaction step that frees ``holder``'s seat, held or not."""
    return Upsert(
        CoordinationItem,
        name,
        [CoordinationItem.holders.delete({holder})],
        CoordinationItem.name.exists() | CoordinationItem.name.does_not_exist(),
    )


def spend_name(entity: str) -> Upsert:
    """The transaction step after which nothing is called ``entity`` again; twice is harmless."""
    name = CoordinationItem.name
    return Upsert(CoordinationItem, _spent(entity), [CoordinationItem.until.set(0)], name.exists() | name.does_not_exist())


def is_unspent(entity: str) -> Guard:
    """The guard under which something may be called so."""
    return Guard(CoordinationItem, _spent(entity), CoordinationItem.name.does_not_exist(), may_be_missing=True)


def _spent(entity: str) -> str:
    return f"spent#{entity}"


def claim_watch(name: str, *, needed_until: datetime, until: datetime, longest: timedelta, now: datetime) -> bool:
    """Whether the caller is to watch ``name`` until ``until``: true unless somebody said that they watch until ``needed_until``.

    Nobody watches for more than ``longest`` from now. Only saves doubled effort; whoever relies on being watched must be safe without.
    """
    mark = CoordinationItem.until
    step = Upsert(
        CoordinationItem,
        name,
        [mark.set(round(until.timestamp(), 3))],
        mark.does_not_exist() | (mark < round(needed_until.timestamp(), 3)) | (mark > round(furthest(now, longest=longest).timestamp(), 3)),
    )
    try:
        update_one(step)
    except ConditionFailed:
        return False
    return True
