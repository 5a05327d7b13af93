"""Records of approvals and relationships (seed 003), the scopes that keep them apart, and how long they may live."""

from __future__ import annotations

import enum
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from typing import Any, ClassVar

from accessportal.kernel.clock import from_epoch
from accessportal.kernel.errors import Conflict, NotAllowed, NotFound
from accessportal.kernel.runs import Report
from accessportal.store.keys import join_key

SHARDS = 16
"""In so many shares a scope's records lie, so that none is a hot partition; lists go through one after the other."""
LONGEST_NAME = 400
MOST_METADATA = 20
LONGEST_METADATA = 500
LONGEST_PART = 64
MOST_PARTS = 8
# With it and the longest names no key is longer than DynamoDB allows.
LONGEST_SCOPE = 256
HOUR_SECONDS = 3_600
DAY_SECONDS = 24 * HOUR_SECONDS


# DynamoDB deletes without an event: not before the sweep had a week for it.
KEPT = timedelta(days=7)


class ScopeKind(enum.StrEnum):
    """The five of the seed."""

    GLOBAL = "global"
    TENANT = "tenant"
    ENVIRONMENT = "env"
    TENANT_ENVIRONMENT = "tenant_env"
    CUSTOM = "custom"


class Scope(str):
    """The boundary that records live within, as the seed encodes it: ``global``, ``tenant:acme-corp``, ``env:prod``,
    ``tenant:acme-corp:env:prod``, ``custom:a:b``.

    Made by :func:`accessportal.authz.policy.scopes.read_scope`, which judges the parts: none holds a ``:``, so no two read alike.
    """

    __slots__ = ()

    @property
    def kind(self) -> ScopeKind:
        word, *rest = self.split(":")
        return ScopeKind.TENANT_ENVIRONMENT if word == "tenant" and len(rest) > 1 else ScopeKind(word)

    @property
    def parts(self) -> tuple[str, ...]:
        """None, a tenant, an environment, both in this order, or a path."""
        rest = self.split(":")[1:]
        return (rest[0], rest[2]) if self.kind is ScopeKind.TENANT_ENVIRONMENT else tuple(rest)


GLOBAL = Scope("global")


class RelationType(enum.StrEnum):
    """The six of the seed. Only trust and membership carry over a chain."""

    ROLE = "role"
    TRUST = "trust"
    MEMBERSHIP = "membership"
    OWNERSHIP = "ownership"
    DELEGATION = "delegation"
    CUSTOM = "custom"

    @property
    def carries(self) -> bool:
        return self in (RelationType.TRUST, RelationType.MEMBERSHIP)


DIRECT = "direct"
"""Who holds what was granted without a request."""
Names = tuple[str, str, str]
"""What tells a record of a scope apart: identity, resource, action; or subject, relation, object."""


class _Named:
    """What approvals and relationships are told apart and found by: ``fields`` are the names in a scope, ``target_fields`` those that
    "who may?" names."""

    __slots__ = ()
    word: ClassVar[str]
    fields: ClassVar[Names]
    target_fields: ClassVar[tuple[str, ...]]
    scope: Scope

    @property
    def names(self) -> Names:
        one, two, three = (getattr(self, name) for name in self.fields)
        return one, two, three

    @property
    def target(self) -> tuple[str, ...]:
        return tuple(getattr(self, name) for name in self.target_fields)

    @property
    def key(self) -> str:
        """The seed's key text, for other programs. It is not unique when a part holds a ``:``, so nothing is found by it."""
        return ":".join((f"{self.word}s", self.scope, *self.names))

    @property
    def entity(self) -> str:
        return entity_of(self.word, self.scope, self.names)


@dataclass(frozen=True, slots=True)
class Approval(_Named):
    """``identity`` may do ``action`` on ``resource`` within ``scope`` until ``expires_at`` (``None``: without an end).

    ``ttl_seconds`` is the time that was granted last. ``held_until``: for whom it is there until when, in epoch seconds (0: without an
    end): the ids of requests, and ``direct`` for whoever granted it without one. The latest of them is the end.
    ``refreshes``: when it was granted or extended, its policy let checks that say yes move its end.
    """

    word = "approval"
    fields = ("identity", "resource", "action")
    target_fields = ("resource", "action")
    scope: Scope
    identity: str
    resource: str
    action: str
    granted_by: str
    granted_at: datetime
    expires_at: datetime | None = None
    ttl_seconds: int | None = None
    metadata: Mapping[str, Any] = field(default_factory=dict)
    held_until: Mapping[str, Any] = field(default_factory=dict)
    refreshed_at: datetime | None = None
    refreshes: bool = False
    version: int = 0
    audit_head: str = ""

    @property
    def began_at(self) -> datetime:
        return self.granted_at


@dataclass(frozen=True, slots=True)
class Relationship(_Named):
    """``subject`` stands in ``relation`` to ``object`` within ``scope`` until ``expires_at``; the rest as for :class:`Approval`."""

    word = "relationship"
    fields = ("subject", "relation", "object")
    target_fields = ("object",)
    scope: Scope
    subject: str
    relation: str
    object: str
    relation_type: RelationType
    created_by: str
    created_at: datetime
    expires_at: datetime | None = None
    ttl_seconds: int | None = None
    metadata: Mapping[str, Any] = field(default_factory=dict)
    held_until: Mapping[str, Any] = field(default_factory=dict)
    refreshed_at: datetime | None = None
    refreshes: bool = False
    version: int = 0
    audit_head: str = ""

    @property
    def began_at(self) -> datetime:
        return self.created_at


def end_of_holders(held_until: Mapping[str, Any]) -> datetime | None:
    """The latest of the ends until which a record is owed to somebody; ``None``: one of them has none."""
    ends = [int(at) for at in held_until.values()]
    return None if 0 in ends else from_epoch(max(ends))


def entity_of(word: str, scope: Scope, names: Names) -> str:
    """The name of a record's chain in the audit log; the parts are escaped, so that no two records share one."""
    return f"{word}#{scope}#{join_key(*names)}"


@dataclass(frozen=True, slots=True)
class TtlPolicy:
    """How long records of a scope live. ``default_seconds`` ``None``: what is granted without a length lives as long as it may.

    ``is_enforced`` false: a length outside is kept, with a warning. ``refresh_seconds``: a check that says yes moves the end so far
    from now, never past the maximum.
    """

    default_seconds: int | None = None
    min_seconds: int = 60
    max_seconds: int = 365 * DAY_SECONDS
    is_enforced: bool = True
    refresh_seconds: int | None = None


# The seed's presets.
PRESETS: Mapping[str, TtlPolicy] = {
    "temporary": TtlPolicy(HOUR_SECONDS, 60, DAY_SECONDS),
    "short_lived": TtlPolicy(DAY_SECONDS, HOUR_SECONDS, 7 * DAY_SECONDS),
    "long_lived": TtlPolicy(30 * DAY_SECONDS, DAY_SECONDS, 365 * DAY_SECONDS),
}


class ScopeState(enum.StrEnum):
    """``deleted``: none of its records is left; a new one opens it again."""

    OPEN = "open"
    DELETING = "deleting"
    DELETED = "deleted"


@dataclass(frozen=True, slots=True)
class ScopeFacts:
    """A scope that something was granted in or a policy was set for. ``policy`` ``None``: that of a scope above counts.

    ``removed``: so many records its last deletion has removed.
    """

    scope: Scope
    state: ScopeState = ScopeState.OPEN
    policy: TtlPolicy | None = None
    deleting_since: datetime | None = None
    removed: int = 0
    version: int = 0
    audit_head: str = ""

    @property
    def entity(self) -> str:
        return f"scope#{self.scope}"

    @property
    def opened(self) -> ScopeFacts:
        """As it is when it is open, for the first time or again."""
        return replace(self, state=ScopeState.OPEN, removed=0, deleting_since=None)


@dataclass(frozen=True, slots=True, kw_only=True)
class SweepReport(Report):
    """``is_partial``: its time was over before it had seen all that is over."""

    removed: int
    is_partial: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class MoveReport(Report):
    """How many records ``moved``, or would have where it is not ``is_applied``; failures are those that stay."""

    moved: int
    is_applied: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class DeletionReport(Report):
    """``removed`` records, ``deleted`` scopes of which none is left, and how many scopes are ``under_way``."""

    removed: int
    deleted: tuple[str, ...]
    under_way: int


class UnauthorizedScopeAccess(NotAllowed):
    """The caller's scope does not reach the asked one; the message tells nothing about what exists there."""

    def __init__(self) -> None:
        super().__init__("This is outside the scope that you may use.", code="UnauthorizedScopeAccess")


class NoSuchRecord(NotFound):
    """There is no such record that counts, or the caller may not know of it."""

    def __init__(self, word: str) -> None:
        super().__init__(f"There is no such {word} that counts now.", code=f"{word}_not_found")


class ScopeDeleting(Conflict):
    """Nothing new comes into a scope that is being deleted."""

    def __init__(self, scope: Scope) -> None:
        super().__init__(f"{scope} is being deleted. Grant in another scope, or again when that has ended.", code="scope_deleting")
