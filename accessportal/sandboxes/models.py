"""The SandboxPool items (seed 002) and their keys. Key strings of this table are built here and nowhere else.

Keys, the seed's attributes, and its three indexes are a contract: other programs read and write these rows.
"""

from __future__ import annotations

import zlib
from datetime import datetime
from typing import Any

from pynamodb.attributes import MapAttribute, NumberAttribute, UnicodeAttribute

from accessportal.store.base import PortalModel, global_index, register
from accessportal.store.keys import join_key, split_key

META = "META"
FREE_SHARDS = 8
_SANDBOX = "SBX#"


@register
class SandboxItem(PortalModel):
    """A sandbox, a key, a line of the free list, a run or a fact of the pool: the item's keys tell which. Items that are no sandbox carry
    no attribute that an index of the seed is about. Times are epoch seconds; ``due_at``, ``held_until`` and ``delete_sent_at`` have
    milliseconds."""

    base_table_name = "SandboxPool"

    pk = UnicodeAttribute(hash_key=True, attr_name="PK")
    sk = UnicodeAttribute(range_key=True, attr_name="SK")
    # the seed's attributes of a sandbox
    sandbox_id = UnicodeAttribute(null=True)
    name = UnicodeAttribute(null=True)
    external_id = UnicodeAttribute(null=True)
    status = UnicodeAttribute(null=True)
    lab_duration_hours = NumberAttribute(null=True)
    deletion_retry_count = NumberAttribute(null=True)
    allocated_at = NumberAttribute(null=True)
    created_at = NumberAttribute(null=True)
    updated_at = NumberAttribute(null=True)
    track = UnicodeAttribute(null=True, attr_name="allocated_to_track")
    key = UnicodeAttribute(null=True, attr_name="idempotency_key")
    deletion_requested_at = NumberAttribute(null=True)
    last_synced = NumberAttribute(null=True)
    # ours
    version = NumberAttribute(null=True)
    audit_head = UnicodeAttribute(null=True)
    fence = NumberAttribute(null=True)
    expires_at = NumberAttribute(null=True)
    grace_ends_at = NumberAttribute(null=True)
    lent_at = NumberAttribute(null=True)
    due = UnicodeAttribute(null=True)
    due_at = NumberAttribute(null=True)
    missing_since = NumberAttribute(null=True)
    held_by = UnicodeAttribute(null=True)
    held_until = NumberAttribute(null=True)
    delete_sent_at = NumberAttribute(null=True)
    delete_generation = UnicodeAttribute(null=True)
    generation = UnicodeAttribute(null=True)
    clean_error = UnicodeAttribute(null=True)
    quarantine_reason = UnicodeAttribute(null=True)
    last_released_by = UnicodeAttribute(null=True)
    last_released_at = NumberAttribute(null=True)
    last_released_fence = NumberAttribute(null=True)
    claims: Any = MapAttribute(null=True)
    # an idempotency key (with sandbox_id, fence, allocated_at, expires_at, version)
    request_hash = UnicodeAttribute(null=True)
    key_track = UnicodeAttribute(null=True, attr_name="track")
    state = UnicodeAttribute(null=True)
    # who holds for a person (with version): key to sandbox id
    holds: Any = MapAttribute(null=True)
    none_at = NumberAttribute(null=True)
    # the pool: one count of returns for each shard of the free list, in one item, so that one read is one moment of all
    returns_0 = NumberAttribute(null=True)
    returns_1 = NumberAttribute(null=True)
    returns_2 = NumberAttribute(null=True)
    returns_3 = NumberAttribute(null=True)
    returns_4 = NumberAttribute(null=True)
    returns_5 = NumberAttribute(null=True)
    returns_6 = NumberAttribute(null=True)
    returns_7 = NumberAttribute(null=True)
    listed = NumberAttribute(null=True)
    stopped = UnicodeAttribute(null=True)
    shortest_lab = NumberAttribute(null=True)
    counts_at = NumberAttribute(null=True)
    counts = UnicodeAttribute(null=True)
    unreadable = UnicodeAttribute(null=True)
    # a run that was ordered (with state, due, due_at, held_by, held_until, version)
    kind = UnicodeAttribute(null=True)
    ordered_by = UnicodeAttribute(null=True)
    ordered_at = NumberAttribute(null=True)
    started_at = NumberAttribute(null=True)
    ended_at = NumberAttribute(null=True)
    report = UnicodeAttribute(null=True)
    error = UnicodeAttribute(null=True)
    run_id = UnicodeAttribute(null=True)

    status_index = global_index("StatusIndex", status=UnicodeAttribute(hash_key=True), allocated_at=NumberAttribute(range_key=True))
    """The seed's: by status, by time of allocation (0: not allocated)."""
    track_index = global_index(
        "TrackIndex", allocated_to_track=UnicodeAttribute(hash_key=True), allocated_at=NumberAttribute(range_key=True)
    )
    """The seed's: what a track holds or held last."""
    idempotency_index = global_index(
        "IdempotencyIndex", idempotency_key=UnicodeAttribute(hash_key=True), allocated_at=NumberAttribute(range_key=True)
    )
    """The seed's: by idempotency key."""
    due_index = global_index("DueIndex", due=UnicodeAttribute(hash_key=True), due_at=NumberAttribute(range_key=True))
    """Ours, sparse: what must be expired or cleaned, by when."""


Key = tuple[str, str]


def sandbox_key(sandbox_id: str) -> Key:
    return _SANDBOX + sandbox_id, META


def is_sandbox_key(pk: str) -> bool:
    return pk.startswith(_SANDBOX)


def idempotency_item_key(key: str) -> Key:
    return join_key("KEY", key), META


def key_in(pk: str) -> str | None:
    """The key of an item of :func:`idempotency_item_key`; ``None`` for other items."""
    kind, *parts = split_key(pk)
    return parts[0] if kind == "KEY" and len(parts) == 1 else None


def free_shard_of(sandbox_id: str) -> int:
    return zlib.crc32(sandbox_id.encode()) % FREE_SHARDS


def free_pk(shard: int) -> str:
    return f"FREE#{shard}"


def free_key(sandbox_id: str) -> Key:
    return free_pk(free_shard_of(sandbox_id)), _SANDBOX + sandbox_id


def pool_key() -> Key:
    """The counts of returns: they grow in every transaction that makes a sandbox free."""
    return "POOL", META


def returns_in(shard: int) -> NumberAttribute:
    """The count of returns of one shard."""
    found: NumberAttribute = getattr(SandboxItem, f"returns_{shard}")
    return found


def counts_key() -> Key:
    """How many sandboxes were in each status when last counted; apart from the counts that transactions contend for."""
    return "POOL", "COUNTS"


def sync_key() -> Key:
    """The last look at the provider's list."""
    return "POOL", "SYNC"


def run_key(run_id: str) -> Key:
    return join_key("RUN", run_id), META


def last_run_key(kind: str) -> Key:
    """Which run of a kind was ordered last: two orders at the same moment meet here."""
    return "POOL", f"LASTRUN#{kind}"


def count_key(minute: datetime) -> Key:
    """One count of the past; the range key sorts by time."""
    return "POOL", f"COUNT#{minute:%Y-%m-%dT%H:%M}"


def holder_key(track: str) -> Key:
    """What a person holds at once, for the limit."""
    return join_key("HOLDER", track), META


def demand_key() -> Key:
    """When a client was last told that none is free."""
    return "POOL", "DEMAND"
