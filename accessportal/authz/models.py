"""The items of ``Approvals``, ``Relationships`` (seed 003) and ``AuthzScopes``, and their keys, which are built here alone.

Each record carries the seed's key text in ``key`` for other programs. The real keys are made of escaped parts, so that no two records
share one (docs/decisions/0070-approvals-and-relationships.md).
"""

from __future__ import annotations

import hashlib
import zlib
from typing import Any

from pynamodb.attributes import BooleanAttribute, MapAttribute, NumberAttribute, UnicodeAttribute

from accessportal.authz.states import SHARDS, Scope
from accessportal.store.attributes import FreeMapAttribute
from accessportal.store.base import PortalModel, global_index, register
from accessportal.store.keys import join_key

LISTED = "scope"
# Both sort before whatever a part of a scope may hold, so that what lies below a path is one range.
_LEVEL, _NAMES = "!", "#"
_AFTER = "$"
_GATE = "#gate#"


class RecordItem(PortalModel):
    """What approvals and relationships have in common. Times are epoch seconds; ``held_until``: to whom it is owed until when.

    PynamoDB gives each of the two classes below indexes of its own.
    """

    pk = UnicodeAttribute(hash_key=True, attr_name="PK")
    sk = UnicodeAttribute(range_key=True, attr_name="SK")
    key = UnicodeAttribute()
    scope = UnicodeAttribute()
    expires_at = NumberAttribute(null=True)
    ttl_seconds = NumberAttribute(null=True)
    metadata: Any = FreeMapAttribute(null=True)
    # ours
    held_until: Any = MapAttribute(null=True)
    refreshed_at = NumberAttribute(null=True)
    refreshes = BooleanAttribute(null=True)
    target = UnicodeAttribute()
    shard = UnicodeAttribute()
    place = UnicodeAttribute()
    ends = UnicodeAttribute(null=True)
    # DynamoDB deletes without an event, so not before the sweep had a week for it
    purge_at = NumberAttribute(null=True)
    version = NumberAttribute()
    audit_head = UnicodeAttribute()

    target_index = global_index("TargetIndex", target=UnicodeAttribute(hash_key=True), pk=UnicodeAttribute(range_key=True, attr_name="PK"))
    """Who may do an action on a resource, or stands in relation to an object, within a scope."""
    scope_index = global_index("ScopeIndex", shard=UnicodeAttribute(hash_key=True), place=UnicodeAttribute(range_key=True))
    """A share of what lies in a tenant, an environment or a path and below it, in the order of the scopes."""
    end_index = global_index("EndIndex", ends=UnicodeAttribute(hash_key=True), expires_at=NumberAttribute(range_key=True))
    """Sparse: a share of what has an end, the nearest first."""


@register
class ApprovalItem(RecordItem):
    """An approval; the seed's attributes by the seed's names."""

    base_table_name = "Approvals"
    time_to_live = "purge_at"

    identity = UnicodeAttribute()
    resource = UnicodeAttribute()
    action = UnicodeAttribute()
    granted_by = UnicodeAttribute()
    granted_at = NumberAttribute()


@register
class RelationshipItem(RecordItem):
    """A relationship; the seed's attributes by the seed's names."""

    base_table_name = "Relationships"
    time_to_live = "purge_at"

    subject = UnicodeAttribute()
    relation = UnicodeAttribute()
    object = UnicodeAttribute()
    relation_type = UnicodeAttribute()
    created_by = UnicodeAttribute()
    created_at = NumberAttribute()


@register
class ScopeItem(PortalModel):
    """A scope with its policy and its deletion, or one of its gates (:func:`gate_key`, with ``state`` and ``removed`` alone)."""

    base_table_name = "AuthzScopes"

    scope = UnicodeAttribute(hash_key=True)
    list = UnicodeAttribute(null=True)
    deleting = UnicodeAttribute(null=True)
    state = UnicodeAttribute()
    policy: Any = MapAttribute(null=True)
    deleting_since = NumberAttribute(null=True)
    # at a gate: so many of its records the deletion under way has removed
    removed = NumberAttribute(null=True)
    version = NumberAttribute(null=True)
    audit_head = UnicodeAttribute(null=True)

    list_index = global_index("ListIndex", list=UnicodeAttribute(hash_key=True), scope=UnicodeAttribute(range_key=True))
    """Sparse: every scope that something was granted in or a policy was set for, by name."""
    deleting_index = global_index("DeletingIndex", deleting=UnicodeAttribute(hash_key=True), deleting_since=NumberAttribute(range_key=True))
    """Sparse: the scopes that are being deleted, the oldest order first."""


@register
class KeyItem(PortalModel):
    """The request that a program's idempotency key stands for, for a day; ``name`` tells the program, too."""

    base_table_name = "AuthzKeys"
    time_to_live = "purge_at"

    name = UnicodeAttribute(hash_key=True)
    request_hash = UnicodeAttribute()
    purge_at = NumberAttribute()


def key_within(scope: Scope, *parts: str) -> str:
    """Hash key of what an identity or a subject has in a scope, and in the index by resource and action, or by object. A scope's text
    needs no escaping: no part holds a ``#``."""
    return f"{scope}#{join_key(*parts)}"


def shard_of(*parts: str) -> int:
    """Which of the shares that would otherwise be one hot partition a record is in."""
    return zlib.crc32(join_key(*parts).encode()) % SHARDS


def root_of(scope: Scope) -> str:
    """What everything lies below that a caller of ``scope`` may list at once: the tenant, the environment, the path's first part."""
    return ":".join(scope.split(":")[:2])


def place_of(scope: Scope, *names: str) -> str:
    """Range key within a shard: the scope, then a digest of the names, which may be longer than a key."""
    return _levels(scope) + _NAMES + hashlib.sha256(join_key(*names).encode()).hexdigest()[:32]


def places_within(scope: Scope, *, is_wide: bool) -> tuple[str, str]:
    """From and to which places the records of ``scope`` lie, with all below it where ``is_wide``."""
    return (_levels(scope) + (_LEVEL if is_wide else _NAMES), _levels(scope) + _AFTER)


def _levels(scope: Scope) -> str:
    # A tenant's environments lie below the tenant.
    return _LEVEL.join((scope.split(":")[0], *scope.parts))


def gate_key(scope: Scope, *names: str) -> str:
    """What a grant's transaction looks at to see that the scope is open; several, since each is in one transaction at a time."""
    return gates_of(scope)[shard_of(*names)]


def gates_of(scope: Scope) -> list[str]:
    return [f"{scope}{_GATE}{number}" for number in range(SHARDS)]


def is_gate(key: str) -> bool:
    return _GATE in key
