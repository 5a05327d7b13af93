"""Records of the history: intervals in which somebody had something."""

from __future__ import annotations

import enum
import hashlib
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import Any

from accessportal.kernel.clock import Precise, from_epoch
from accessportal.kernel.errors import Unavailable
from accessportal.kernel.pages import Page
from accessportal.kernel.runs import Report
from accessportal.store.keys import join_key


class ThingKind(enum.StrEnum):
    """What one can have access to. ``LEASE`` is an account that is lent, whoever has access to it."""

    ACCOUNT = "account"
    GROUP = "group"
    SANDBOX = "sandbox"
    LEASE = "lease"
    APPROVAL = "approval"
    RELATIONSHIP = "relationship"

    @property
    def has_scope(self) -> bool:
        return self in (ThingKind.APPROVAL, ThingKind.RELATIONSHIP)


@dataclass(frozen=True, slots=True)
class Thing:
    """An account (also one that is lent) by its id, a group by its path, a sandbox by its id; within ``scope`` the resource of approvals,
    or the object of relationships."""

    kind: ThingKind
    name: str
    scope: str = ""

    @property
    def key(self) -> str:
        return join_key(self.kind.value, *((self.scope, self.name) if self.kind.has_scope else (self.name,)))


@dataclass(frozen=True, slots=True, kw_only=True)
class Interval:
    """``who`` (a person by address, a group by path, a program's track) had ``right`` on ``thing``: a permission set, a role, an action, a
    relation. ``reason``: the request, or ``permanent``, ``direct``, ``outside``, the key of a track. It began with event ``sequence`` of
    ``entity``. A group below a group has itself as ``who``; ``is_off``: it is disabled.

    ``until``: when it was to end, as last written; ``ended_at``: when somebody or time ended it; ``gone_at``: when that was proved.
    ``key`` is unique, in order of time, and the same whenever it is made anew; it stays when somebody in it is replaced by a pseudonym.
    ``proved_at``: when it was proved to be there. ``begun_how`` and ``gone_how`` are the proof in words, with AWS's job; that it is gone
    is event ``gone_sequence`` of ``entity``."""

    key: str
    thing: Thing
    who: str
    right: str
    reason: str
    entity: str
    sequence: int
    from_at: Precise
    request_id: str = ""
    rule: str = ""
    asked_by: str = ""
    decided_by: tuple[str, ...] = ()
    begun_how: str = ""
    proved_at: Precise | None = None
    until: datetime | None = None
    ended_at: Precise | None = None
    ended_by: str = ""
    gone_at: Precise | None = None
    gone_how: str = ""
    gone_sequence: int = 0
    is_off: bool = False

    @property
    def is_group(self) -> bool:
        """Whether a group has it, for all who are in it."""
        return self.who.startswith("/")

    @property
    def over_at(self) -> datetime | None:
        """When it was over: proved gone; what every check asks for its end is over at its end. ``None``: not yet, as far as is known."""
        if self.thing.kind.has_scope and self.until is not None:
            return self.until if self.gone_at is None else min(self.until, self.gone_at)
        return self.gone_at

    def is_at(self, at: datetime) -> bool:
        """Whether it was so at that moment."""
        return self.from_at <= at and (self.over_at is None or at < self.over_at)

    def overlaps(self, begin: datetime, end: datetime) -> bool:
        """Whether it was so at some moment from ``begin`` on and before ``end``."""
        return self.from_at < end and (self.over_at is None or begin < self.over_at)


@dataclass(frozen=True, slots=True)
class Held:
    """``who`` had the right of ``interval``, by themselves or through groups. ``path`` is what it took beside: their membership, and the
    places in the tree of the groups between it and the group that had the right; of a role in a group above those down to the group.
    ``since`` and ``until``: between which that group was not disabled, as far as that matters."""

    interval: Interval
    path: tuple[Interval, ...] = ()
    since: datetime | None = None
    until: datetime | None = None

    @property
    def who(self) -> str:
        if self.interval.is_group and self.path:
            return self.path[0].who
        return self.interval.who

    @property
    def from_at(self) -> datetime:
        return max(at for at in (self.since, *(one.from_at for one in (self.interval, *self.path))) if at is not None)

    @property
    def over_at(self) -> datetime | None:
        """When the first of what it takes was over; ``None``: not yet, as far as is known."""
        return min((at for at in (self.until, *(one.over_at for one in (self.interval, *self.path))) if at is not None), default=None)


@dataclass(frozen=True, slots=True)
class Answer:
    """One page of what was asked for. All is known of what happened up to ``known_until``, some of what happened since.
    ``unfollowed``: whose events could not be read, so that what they tell is not in it; for those who may not know whose,
    one word for all."""

    page: Page[Held]
    known_until: datetime
    unfollowed: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Mark:
    """How far the events of ``entity`` were read: to ``sequence``, whose hash is ``head``. ``open``: its intervals that are not over;
    ``to_write``: those whose rows are still to be written, ``shown`` are the keys among them that have an open row. ``facts``: what else
    the next event needs to know. ``revision`` grows with every write."""

    entity: str
    sequence: int = 0
    head: str = ""
    open: tuple[Interval, ...] = ()
    to_write: tuple[Interval, ...] = ()
    shown: tuple[str, ...] = ()
    facts: Mapping[str, Any] = field(default_factory=dict)
    revision: int = 0

    def to(self, **changes: Any) -> Mark:
        return replace(self, **changes)


@dataclass(frozen=True, slots=True, kw_only=True)
class Progress:
    """How far the history is. The keys of its rows begin with ``generation``. While it is being made from nothing, ``parts_done`` of the
    parts of the log are read as it was at ``begun_at``. ``read_until``: up to where each reading of the log's days has come.
    ``unfollowed``: entities whose events it was not able to read on the way; each run tries them again. ``passed_over``: those of which it
    left out an event that was damaged, until it is made anew. ``is_outdated``: a former version made it, whose rows lie elsewhere."""

    generation: int
    begun_at: datetime
    is_outdated: bool = False
    parts_done: int = 0
    read_until: Mapping[str, datetime] = field(default_factory=dict)
    unfollowed: tuple[str, ...] = ()
    passed_over: tuple[str, ...] = ()
    revision: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class FollowReport(Report):
    """What one run did: ``events`` read of ``entities``; ``parts_left``: of the log, where it was made from nothing. ``known_until``: up to
    when everything is told now; ``None`` while it is being made."""

    events: int = 0
    entities: int = 0
    parts_left: int = 0
    known_until: datetime | None = None


class NotMadeYet(Unavailable):
    """Nothing can be answered: the history is being made from the log."""

    def __init__(self, done: int, parts: int) -> None:
        words = f"The history is being made from the audit log: {done} of {parts} parts are done. Try again later, or run rebuild_history."
        super().__init__(words, code="history_not_made")


class RestoredSince(Unavailable):
    """The events of an entity are not those that were read before."""

    def __init__(self, entity: str) -> None:
        words = f"The events of {entity} are not those that the history was made of. Run rebuild_history."
        super().__init__(words, code="history_outdated")


def key_of(from_at: datetime, *names: str) -> str:
    """The key of what began then and is told apart by its names."""
    return f"{moment_key(from_at)}#{hashlib.sha256(join_key(*names).encode()).hexdigest()[:24]}"


def moment_key(moment: datetime) -> str:
    """The beginning of the keys of what began at ``moment``."""
    return f"{int(moment.timestamp() * 1000):014d}"


def begin_of(key: str) -> datetime:
    """When the interval of this key began, in whole milliseconds."""
    return from_epoch(int(key.partition("#")[0]) / 1000)
