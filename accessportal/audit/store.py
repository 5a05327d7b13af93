"""The only user of the AuditLog item class: events in and out."""

from __future__ import annotations

from datetime import datetime

from accessportal.audit.models import AuditItem, day_shard_for, day_shards, outbox_for
from accessportal.audit.policy import event_hash
from accessportal.audit.states import AuditEvent, Draft
from accessportal.kernel.clock import from_epoch
from accessportal.kernel.ids import new_event_id
from accessportal.kernel.pages import Page
from accessportal.store.reading import query_page
from accessportal.store.transactions import Insert

_MS = 1000


def insert_event(draft: Draft, *, entity: str, sequence: int, prev_hash: str, actor: str, now: datetime) -> tuple[Insert, str]:
    """The transaction step that writes the event, and the event's hash (the entity's new ``audit_head``)."""
    at = from_epoch(round(now.timestamp() * _MS) / _MS)
    event_id = new_event_id(at)
    digest = event_hash(
        entity=entity,
        sequence=sequence,
        event_id=event_id,
        at=at,
        action=draft.action,
        actor=actor,
        subject=draft.subject,
        scope=draft.scope,
        data=draft.data,
        prev_hash=prev_hash,
    )
    item = AuditItem(
        entity,
        sequence,
        event_id=event_id,
        at=round(at.timestamp(), 3),
        action=draft.action,
        actor=actor,
        subject=draft.subject,
        scope=draft.scope or None,
        data=draft.data,
        prev_hash=prev_hash or None,
        hash=digest,
        day_shard=day_shard_for(entity, at),
        outbox=outbox_for(entity),
    )
    return Insert(item), digest


def page_of_entity(entity: str, *, cursor: str | None, limit: int, newest_first: bool) -> Page[AuditEvent]:
    return query_page(
        AuditItem,
        entity,
        pattern=f"audit.entity:{entity}:{newest_first}",
        convert=_event,
        cursor=cursor,
        limit=limit,
        newest_first=newest_first,
        consistent=True,
    )


def page_of_actor(actor: str, *, cursor: str | None, limit: int) -> Page[AuditEvent]:
    return query_page(
        AuditItem,
        actor,
        index=AuditItem.actor_index,
        pattern=f"audit.actor:{actor}",
        convert=_event,
        cursor=cursor,
        limit=limit,
        newest_first=True,
    )


def page_of_day(day: str, *, before: float, limit: int) -> list[AuditEvent]:
    """The newest ``limit`` events of ``day`` strictly before epoch ``before``, newest first, over all shards."""
    found: list[AuditEvent] = []
    for shard in day_shards(day):
        page = query_page(
            AuditItem,
            shard,
            index=AuditItem.day_index,
            pattern="audit.day",
            convert=_event,
            limit=limit,
            range_condition=AuditItem.at < before,
            newest_first=True,
        )
        found.extend(page.items)
    found.sort(key=lambda event: (event.at, event.event_id), reverse=True)
    return found[:limit]


def _event(item: AuditItem) -> AuditEvent:
    return AuditEvent(
        entity=item.entity,
        sequence=int(item.sequence),
        event_id=item.event_id,
        at=from_epoch(item.at),
        action=item.action,
        actor=item.actor,
        subject=item.subject,
        scope=item.scope or "",
        data=item.data.as_dict(),
        prev_hash=item.prev_hash or "",
        hash=item.hash,
    )
