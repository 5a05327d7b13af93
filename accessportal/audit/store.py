"""The only user of the AuditLog item class: events in and out."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence
from dataclasses import replace
from datetime import date, datetime
from typing import Any

from pynamodb.exceptions import PynamoDBException
from pynamodb.indexes import Index

from accessportal.audit import config
from accessportal.audit.models import OUTBOX_SHARDS, AuditItem, day_shard_for, day_shards, outbox_for
from accessportal.audit.policy import event_hash
from accessportal.audit.states import AuditEvent, Draft
from accessportal.kernel.clock import from_epoch
from accessportal.kernel.ids import new_event_id
from accessportal.kernel.pages import Page
from accessportal.store.base import unavailable
from accessportal.store.coordination import spend_name
from accessportal.store.listing import Listing
from accessportal.store.reading import RawItem, scan_all
from accessportal.store.records import Records
from accessportal.store.transactions import Change, ConditionFailed, Insert, Remove, transact, update_one

Events = Listing[AuditItem, AuditEvent]
_MS = 1000
_records = Records(AuditItem, AuditEvent)


def insert_event(draft: Draft, *, entity: str, sequence: int, prev_hash: str, actor: str, now: datetime) -> tuple[Insert, str]:
    """The transaction step that writes the event, and the event's hash (the entity's new ``audit_head``)."""
    keys = config.current()
    at = from_epoch(round(now.timestamp() * _MS) / _MS)
    event = AuditEvent(
        entity=entity,
        sequence=sequence,
        event_id=new_event_id(at),
        at=at,
        action=draft.action,
        actor=actor,
        subject=draft.subject,
        scope=draft.scope,
        data=draft.data,
        prev_hash=prev_hash,
        hash="",
        key_id=keys.signing_id,
        pseudonym_id=keys.pseudonyms.key_id if keys.pseudonyms else "",
    )
    told = replace(event, hash=event_hash(event, keys))
    return _records.insertion(told, day_shard=day_shard_for(entity, at), outbox=outbox_for(entity)), told.hash


def _events(name: str, *, index: Index[AuditItem] | None = None, newest_first: bool = False, consistent: bool = False) -> Events:
    return Listing(name, AuditItem, _event, index, newest_first, consistent, _ruin)


def history(
    entity: str,
    *,
    cursor: str | None = None,
    limit: int = 100,
    newest_first: bool = True,
    since: int | None = None,
    until: int | None = None,
) -> Page[AuditEvent]:
    """One page of the events of ``entity`` (for example ``request#<id>``), strongly read; ``since`` and ``until`` are the lowest and the
    highest sequence wanted."""
    wanted: Any = None
    if since is not None:
        wanted = AuditItem.sequence >= since
    elif until is not None:
        wanted = AuditItem.sequence <= until
    events = _events("audit.entity", consistent=True, newest_first=newest_first)
    return events(entity, cursor=cursor, limit=limit, where=wanted, bound=f"{newest_first}:{since}:{until}")


def list_day(day: date, *, cursor: str | None = None, limit: int = 50) -> Page[AuditEvent]:
    """What happened on a UTC ``day``, newest first, one request a shard."""
    return events_of_shard.merged(shards_of_day(day), cursor=cursor, limit=limit)


def shards_of_day(day: date) -> tuple[str, ...]:
    """Every partition of a day in DayIndex."""
    return day_shards(day.isoformat())


def events_of_shard_between(shard: str, begin: datetime, end: datetime) -> Iterator[AuditEvent]:
    """What DayIndex holds of a shard of a day from one moment to another, both included, oldest first."""
    return events_of_shard.every(shard, where=AuditItem.at.between(begin.timestamp(), end.timestamp()))


def outbox_shards() -> tuple[str, ...]:
    """Every partition of OutboxIndex; all events of an entity are in the same one."""
    return tuple(f"outbox#{shard}" for shard in range(OUTBOX_SHARDS))


def mark_published(event: AuditEvent) -> bool:
    """The event leaves OutboxIndex; false when it had left already."""
    outbox = AuditItem.outbox
    try:
        update_one(Change(AuditItem, event.entity, [outbox.remove()], outbox.exists(), event.sequence))
    except ConditionFailed:
        return False
    return True


def delete_events(events: Sequence[AuditEvent]) -> bool:
    """All events of a chain are gone and its name is spent, or nothing is; false when one is not as it was read."""
    try:
        removals = [Remove(AuditItem, event.entity, AuditItem.hash == event.hash, event.sequence) for event in events]
        transact([*removals, spend_name(events[0].entity)])
    except ConditionFailed:
        return False
    return True


def every_entity() -> Iterator[str]:
    """Every entity that ever had an event, those that are gone too. Reads the whole table, in which an entity's events lie beside each
    other: for checks, not for pages."""
    last = ""
    try:
        for item in AuditItem.scan(attributes_to_get=["entity"]):
            if item.entity != last:
                yield item.entity
            last = item.entity
    except PynamoDBException as error:
        raise unavailable(error) from error


def every_chain(*, segment: int, segments: int) -> Iterator[tuple[str, list[AuditEvent]]]:
    """Everything that ever had an event, also what is gone, with its events in order, strongly read: one of the ``segments`` that the
    table is cut into. For checks, not for pages."""
    events = scan_all(AuditItem, _event, stand_in=_ruin, segment=segment, segments=segments)
    for entity, chain in itertools.groupby(events, key=lambda event: event.entity):
        yield entity, sorted(chain, key=lambda event: event.sequence)


def _event(item: AuditItem) -> AuditEvent:
    at = from_epoch(item.at)
    # The hash covers what an event tells, not where it is filed; filed elsewhere, a day's list would pass over it.
    is_filed = item.day_shard == day_shard_for(item.entity, at)
    flaw = "" if is_filed else "was filed under another day after it was written"
    return replace(_records.record(item), flaw=flaw, is_published=item.outbox is None)


def event_of(raw: RawItem) -> AuditEvent:
    """The event in an item as DynamoDB sends it."""
    return _event(AuditItem.from_raw_data(dict(raw)))


def _ruin(raw: RawItem) -> AuditEvent:
    """What stands where an event can't be read any more: its place in the chain, and that it is a break."""

    def text(name: str) -> str:
        return str(raw.get(name, {}).get("S", ""))

    return AuditEvent(
        entity=text("entity"),
        sequence=int(float(raw["sequence"]["N"])),
        event_id=text("event_id"),
        at=from_epoch(0),
        action=text("action"),
        actor=text("actor"),
        subject=text("subject"),
        scope=text("scope"),
        data={},
        prev_hash=text("prev_hash"),
        hash=text("hash"),
        key_id=text("key_id"),
        pseudonym_id=text("pseudonym_id"),
        seal=text("seal"),
        flaw="can't be read: it was changed after it was written",
        is_published="outbox" not in raw,
    )


by_actor = _events("audit.actor", index=AuditItem.actor_index, newest_first=True)
"""What one actor did, newest first."""
events_of_shard = _events("audit.day_shard", index=AuditItem.day_index)
"""What DayIndex holds of a shard of a day, oldest first."""
unpublished_page = _events("audit.outbox", index=AuditItem.outbox_index)
"""What OutboxIndex holds of a shard, oldest first. It lags: events are missing from it, and published ones are in it."""
