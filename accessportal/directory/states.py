"""Records of the directory: people, groups, memberships (table ``AccessManagement``, seed 001)."""

from __future__ import annotations

import enum
from collections.abc import Collection, Mapping
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import Generic, TypeVar

from accessportal.kernel.counts import counted
from accessportal.kernel.pages import Unreadable

ROOT = "/"
"""The group above all others."""
END_OF_TIME = datetime.max.replace(tzinfo=UTC)
"""What counts then, has no end."""
PERMANENT = "permanent"
"""The claim on a membership that an admin gave, without an end."""
PERSON_DELETED = "the person was deleted"
"""The reason of the event by which all that somebody was in a group by is taken away."""
_UNDER = "under:"

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


class GroupVerb(enum.StrEnum):
    """What somebody may want to do with a group."""

    CREATE_GROUP = "create_group"
    RENAME = "rename"
    MOVE = "move"
    DISABLE = "disable"
    ENABLE = "enable"
    DELETE = "delete"
    GRANT = "grant"
    REVOKE = "revoke"
    LEAVE = "leave"
    SEE_MEMBERS = "see_members"


class PersonVerb(enum.StrEnum):
    """What an admin of the root may want to do with people."""

    CREATE = "create"
    RENAME = "rename"
    DISABLE = "disable"
    ENABLE = "enable"
    DELETE = "delete"
    FORGET_IDENTITY = "forget the sign-in accounts of"


_RANKS = {GroupRole.READER: 1, GroupRole.CONTRIBUTOR: 2, GroupRole.ADMIN: 3}


def under(claim_id: str) -> str:
    """The claim that somebody gives whose own right is ``claim_id`` of a request."""
    return _UNDER + claim_id


def is_by_admin(claim_id: str) -> bool:
    """Whether an admin gave it, and no request."""
    return claim_id == PERMANENT or claim_id.startswith(_UNDER)


def lasts(ends_at: datetime | None) -> datetime:
    """To compare ends by: no end is the latest of all."""
    return ends_at if ends_at is not None else END_OF_TIME


def highest(*roles: GroupRole | None) -> GroupRole | None:
    """The one that may most; ``None`` stands for no role."""
    return max((role for role in roles if role is not None), key=lambda role: role.rank, default=None)


@dataclass(frozen=True, slots=True)
class Person:
    """``email`` is as typed, ``key`` its folded form. ``version`` and ``audit_head`` are the end of its chain in the audit log.
    ``is_deleting``: the sweep will finish it. ``identity`` is kept from the first sign-in on. ``outlasts_groups``: they stay when they
    leave their last group."""

    key: str
    email: str
    name: str
    state: State
    created_at: datetime
    version: int = 0
    audit_head: str = ""
    is_deleting: bool = False
    signed_in_at: datetime | None = None
    identity: str = ""
    outlasts_groups: bool = False

    @property
    def is_enabled(self) -> bool:
        return self.state is State.ENABLED

    @property
    def entity(self) -> str:
        """The name of its chain in the audit log."""
        return person_entity(self.key)


@dataclass(frozen=True, slots=True)
class Group:
    """``group_id`` is fixed for life; ``ancestors`` is its place, root first. The counts and ``admins`` (past their end or not) are of the
    group itself. ``tree_version`` grows with its ancestors or children. ``standing_admins``: the root's enabled permanent ones."""

    group_id: str
    name: str
    description: str
    state: State
    ancestors: tuple[str, ...] = ()
    member_count: int = 0
    child_count: int = 0
    tree_version: int = 0
    admins: frozenset[str] = frozenset()
    standing_admins: frozenset[str] = frozenset()
    created_at: datetime | None = None
    version: int = 0
    audit_head: str = ""

    @property
    def is_enabled(self) -> bool:
        return self.state is State.ENABLED

    @property
    def is_root(self) -> bool:
        return self.group_id == ROOT

    @property
    def is_empty(self) -> bool:
        return not (self.member_count or self.child_count)

    @property
    def holds(self) -> str:
        """What is directly in it, in words: ``1 member and 3 groups below``."""
        return f"{counted(self.member_count, 'member', 'members')} and {counted(self.child_count, 'group', 'groups')} below"

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
    """One reason why somebody is in a group: ``PERMANENT``, a request id with its end, or what somebody gave who is admin by a request
    (:func:`under`). ``given_at`` and ``given_by`` are unknown for items of other programs."""

    claim_id: str
    role: GroupRole
    ends_at: datetime | None = None
    given_at: datetime | None = None
    given_by: str = ""

    def counts_at(self, now: datetime) -> bool:
        """Deadlines are enforced on read: past its end a claim gives nothing, whether or not it is still there."""
        return self.ends_at is None or now < self.ends_at

    @property
    def is_by_admin(self) -> bool:
        """Given by an admin of the group, who may take it away; the others are requests' own."""
        return is_by_admin(self.claim_id)

    @property
    def request_id(self) -> str:
        """The request that it ends with; empty for none."""
        return "" if self.claim_id == PERMANENT else self.claim_id.removeprefix(_UNDER)


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
        """When the role of ``role_at`` ends, or becomes a lower one; ``None`` for never."""
        claim = self.strongest_at(now)
        return claim.ends_at if claim is not None else None

    def strongest_at(self, now: datetime) -> Claim | None:
        """The claim that gives the role of ``role_at``, of several the one that lasts longest."""
        counting = (claim for claim in self.claims if claim.counts_at(now))
        return max(counting, key=lambda claim: (claim.role.rank, lasts(claim.ends_at)), default=None)

    @property
    def has_admin_claim(self) -> bool:
        """Past its end or not: what is past its end is still there to be found and taken away."""
        return any(claim.role is GroupRole.ADMIN for claim in self.claims)

    def without(self, claim_ids: Collection[str]) -> Membership:
        """The same, as the other claims hold it; with none left it gives nothing."""
        return replace(self, claims=tuple(claim for claim in self.claims if claim.claim_id not in claim_ids))

    def claim(self, claim_id: str) -> Claim | None:
        return next((claim for claim in self.claims if claim.claim_id == claim_id), None)


@dataclass(frozen=True, slots=True)
class PersonHolding:
    """A person with every direct membership, which have no version of their own. Without ``person`` nobody is there who could be in
    them."""

    key: str
    person: Person | None
    memberships: tuple[Membership, ...]

    @property
    def entity(self) -> str:
        return person_entity(self.key)

    @property
    def version(self) -> int:
        return 0 if self.person is None else self.person.version

    @property
    def audit_head(self) -> str:
        return "" if self.person is None else self.person.audit_head


@dataclass(frozen=True, slots=True)
class EffectiveRole:
    """``role`` on ``group_id`` and everything below it, by ``claim_id``, of several claims the one that lasts longest. ``ends_at``: when
    that ends, ``None`` for never."""

    group_id: str
    role: GroupRole
    ends_at: datetime | None
    claim_id: str = PERMANENT


@dataclass(frozen=True, slots=True)
class GivenRole:
    """A membership that somebody gave whose own right has an end."""

    person: str
    group_id: str


@dataclass(frozen=True, slots=True)
class Crowd:
    """The enabled people in some groups and everything below them, sorted. ``missing_groups`` are those that do not exist or are disabled:
    they have nobody. Not ``is_whole``: in some groups below nobody was looked for."""

    people: tuple[Person, ...]
    missing_groups: tuple[str, ...] = ()
    is_whole: bool = True


@dataclass(frozen=True, slots=True)
class PeopleFound:
    """Who fits what was typed. ``is_more``: others fit, too. ``is_partial``: not everybody's name was looked at. ``unreadable``: whose
    address fits, and who can't be read."""

    people: tuple[Person, ...]
    is_more: bool
    is_partial: bool
    unreadable: tuple[Unreadable, ...] = ()


@dataclass(frozen=True, slots=True)
class Holding:
    """A direct membership and what it gives now; without ``role`` nothing, and ``reason`` says why. ``group`` is ``None`` when it is
    gone."""

    membership: Membership
    group: Group | None
    role: GroupRole | None
    reason: str = ""


@dataclass(frozen=True, slots=True)
class Inherited:
    """``role`` on ``group_id``, higher than any of its own, that comes from ``source_id``, a group above."""

    group_id: str
    role: GroupRole
    source_id: str


@dataclass(frozen=True, slots=True)
class Explanation:
    """Why a person has their rights: direct memberships, the roles that these give on groups below, and the groups that rules see them in.
    ``is_whole``: nothing was left out; an admin of some groups sees only these and what is below."""

    person: Person
    direct: tuple[Holding, ...]
    inherited: tuple[Inherited, ...]
    groups: frozenset[str]
    is_whole: bool = True


@dataclass(frozen=True, slots=True)
class Tree:
    """Every group by id, and the ids right below each, sorted. Read from an index: it may lag a moment behind a change."""

    groups: Mapping[str, Group]
    children: Mapping[str, tuple[str, ...]]


@dataclass(frozen=True, slots=True)
class Departure:
    """A person or group that may have lost something: whoever gives things by the directory's word looks again at what it holds. ``token``
    is new with every change, ``since`` the moment of the last. ``lost``: groups that a group's members may be in no longer."""

    entity: str
    token: str
    since: datetime
    lost: frozenset[str] = frozenset()

    @property
    def name(self) -> str:
        """The folded address or the group's id."""
        return self.entity.partition("#")[2]

    @property
    def is_of_group(self) -> bool:
        return self.entity == group_entity(self.name)


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
