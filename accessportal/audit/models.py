"""The AuditLog item (design, data model) and its keys."""

from __future__ import annotations

import zlib
from datetime import datetime
from typing import Any

from pynamodb.attributes import MapAttribute, NumberAttribute, UnicodeAttribute

from accessportal.store.base import PortalModel, global_index, register

DAY_SHARDS = 4
OUTBOX_SHARDS = 4


@register
class AuditItem(PortalModel):
    """One event. ``at`` is epoch seconds with milliseconds."""

    base_table_name = "AuditLog"

    entity = UnicodeAttribute(hash_key=True)
    sequence = NumberAttribute(range_key=True)
    event_id = UnicodeAttribute()
    at = NumberAttribute()
    action = UnicodeAttribute()
    actor = UnicodeAttribute()
    subject = UnicodeAttribute()
    scope = UnicodeAttribute(null=True)
    data: Any = MapAttribute()
    prev_hash = UnicodeAttribute(null=True)
    hash = UnicodeAttribute()
    key_id = UnicodeAttribute(null=True)
    pseudonym_id = UnicodeAttribute(null=True)
    seal = UnicodeAttribute(null=True)
    day_shard = UnicodeAttribute(attr_name="day#shard")
    outbox = UnicodeAttribute(null=True)

    day_index = global_index(
        "DayIndex", day_shard=UnicodeAttribute(hash_key=True, attr_name="day#shard"), at=NumberAttribute(range_key=True)
    )
    """Everything that happened on a day, spread over ``DAY_SHARDS`` partitions."""
    actor_index = global_index("ActorIndex", actor=UnicodeAttribute(hash_key=True), at=NumberAttribute(range_key=True))
    """Everything that one actor did."""
    outbox_index = global_index("OutboxIndex", outbox=UnicodeAttribute(hash_key=True), at=NumberAttribute(range_key=True))
    """What has not been published yet; sparse."""


def day_shards(day: str) -> tuple[str, ...]:
    """Every partition of ``day`` (``YYYY-MM-DD``, UTC)."""
    return tuple(f"{day}#{shard}" for shard in range(DAY_SHARDS))


def day_shard_for(entity: str, at: datetime) -> str:
    return f"{at:%Y-%m-%d}#{zlib.crc32(entity.encode()) % DAY_SHARDS}"


def outbox_for(entity: str) -> str:
    """One entity's events share a shard, so that they can be published in order."""
    return f"outbox#{zlib.crc32(entity.encode()) % OUTBOX_SHARDS}"
