"""Records of the directory: people, groups, memberships (table ``AccessManagement``, seed 001)."""

from __future__ import annotations

import enum
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Generic, TypeVar

ROOT = "/"
"""The group above all others."""
PERMANENT = "permanent"
"""The claim on a membership that an admin gave, without an end; every other claim is the id of a request."""

R = TypeVar("R")


class State(enum.StrEnum):
    ENABLED = "enabled"
    DISABLED = "disabled"


class GroupRole(enum.StrEnum):
    ADMIN = "admin"
    CONTRIBUTOR = "contributor"
    READER = "reader"

    @property
    def rank(self) -> int:
        """The higher, the more it may: an admin may all that a contributor may, and so on."""
        return _RANKS[self]


_RANKS = {GroupRole.READER: 1, GroupRole.CONTRIBUTOR: 2, GroupRole.ADMIN: 3}


def highest(*roles: GroupRole | None) -> GroupRole | None:
    """The one that may most; ``None`` stands for no role."""
    return max((role for role in roles if role is not None), key=lambda role: role.rank, default=None)


@dataclass(frozen=True, slots=True)
class Person:
    """``email`` is as typed; ``key`` is the folded form that every other record refers to.

    ``version`` and ``audit_head`` say where its chain in the audit log ends; memberships are told in the same chain.
    ``is_deleting``: deleting was begun, it is disabled, and the sweep will finish it.
    """

    key: str
    email: str
    name: str
    state: State
    created_at: datetime
    version: int = 0
    audit_head: str = ""
    is_deleting: bool = False

    @property
    def is_enabled(self) -> bool:
        return self.state is State.ENABLED

    @property
    def entity(self) -> str:
        """The name of its chain in the audit log."""
        return person_entity(self.key)


@dataclass(frozen=True, slots=True)
class Group:
    """``group_id`` looks like a path and is fixed for life; its place in the tree is ``ancestors``, from the root down.

    ``member_count`` and ``child_count`` count the memberships and the groups directly in it, not those further below.
    ``admins`` are the folded addresses with an admin claim on it, past its end or not. ``tree_version`` grows whenever its
    ancestors or its set of children change.
    """

    group_id: str
    name: str
    description: str
    state: State
    ancestors: tuple[str, ...] = ()
    member_count: int = 0
    child_count: int = 0
    tree_version: int = 0
    admins: frozenset[str] = frozenset()
    version: int = 0
    audit_head: str = ""

    @property
    def is_enabled(self) -> bool:
        return self.state is State.ENABLED

    @property
    def is_root(self) -> bool:
        return self.group_id == ROOT

    @property
    def parent_id(self) -> str | None:
        """The group right above; ``None`` for the root alone."""
        return self.ancestors[-1] if self.ancestors else None

    @property
    def entity(self) -> str:
        """The name of its chain in the audit log."""
        return group_entity(self.group_id)


@dataclass(frozen=True, slots=True)
class Claim:
    """One reason why somebody is in a group: ``PERMANENT``, or a request id with its end (``ends_at`` is then set)."""

    claim_id: str
    role: GroupRole
    ends_at: datetime | None = None

    def counts_at(self, now: datetime) -> bool:
        """Deadlines are enforced on read: past its end a claim gives nothing, whether or not it is still there."""
        return self.ends_at is None or now < self.ends_at


@dataclass(frozen=True, slots=True)
class Membership:
    """Somebody directly in a group, held by one or more claims. What it gives is asked with the clock passed in."""

    person: str
    group_id: str
    claims: tuple[Claim, ...]
    created_at: datetime
    created_by: str = ""

    def role_at(self, now: datetime) -> GroupRole | None:
        """The highest role among the claims that count ``now``; ``None`` when it gives nothing any more."""
        return highest(*(claim.role for claim in self.claims if claim.counts_at(now)))

    def ends_at(self, now: datetime) -> datetime | None:
        """When the last claim that counts ``now`` ends; ``None`` when one of them is permanent."""
        ends = [claim.ends_at for claim in self.claims if claim.counts_at(now)]
        return None if None in ends else max((end for end in ends if end is not None), default=None)

    def claim(self, claim_id: str) -> Claim | None:
        return next((claim for claim in self.claims if claim.claim_id == claim_id), None)


@dataclass(frozen=True, slots=True)
class EffectiveRole:
    """``role`` on ``group_id`` and everything below it. ``ends_at``: when the claim that gives it ends, ``None`` for never."""

    group_id: str
    role: GroupRole
    ends_at: datetime | None


@dataclass(frozen=True, slots=True)
class Crowd:
    """The enabled people in some groups and everything below them, by folded address, each once, sorted.

    ``missing_groups`` are the asked groups that do not exist or are disabled: they have nobody.
    """

    people: tuple[Person, ...]
    missing_groups: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Tree:
    """Every group by id, and the ids right below each, sorted. Read from an index: it may lag a moment behind a change."""

    groups: Mapping[str, Group]
    children: Mapping[str, tuple[str, ...]]


@dataclass(frozen=True, slots=True)
class MirrorWork:
    """Something that Cognito must still follow: ``entity`` is a person or group by its audit name.

    ``token`` is new with every change. ``attempts`` and ``error`` tell of failures; ``due_at`` is when it is tried again,
    ``since`` when the oldest change that waits was made.
    """

    entity: str
    token: str
    since: datetime
    due_at: datetime
    lease_until: datetime | None
    attempts: int
    error: str


@dataclass(frozen=True, slots=True)
class Mirrored:
    """Whether Cognito has followed a change: ``reason`` says what is waited for when it has not."""

    is_done: bool
    reason: str = ""


@dataclass(frozen=True, slots=True)
class Changed(Generic[R]):
    """A change that was written: the new record, and whether Cognito has followed it yet."""

    record: R
    mirror: Mirrored


def person_entity(key: str) -> str:
    return f"person#{key}"


def group_entity(group_id: str) -> str:
    return f"group#{group_id}"
