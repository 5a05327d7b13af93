"""Records of the mirror: what Cognito must follow, and what came of it."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from accessportal.kernel.runs import Report


@dataclass(frozen=True, slots=True)
class MirrorWork:
    """Something that Cognito must still follow. ``token`` is new with every change, ``since`` is when the oldest one that waits was made,
    ``due_at`` when it is tried again. ``forgets``: a new owner of the address must not get the former one's user."""

    entity: str
    token: str
    since: datetime
    due_at: datetime
    lease_until: datetime | None
    attempts: int
    error: str
    forgets: bool = False


@dataclass(frozen=True, slots=True)
class UserPool:
    """A pool of Cognito. ``is_new``: it was made just now. ``is_set``: it is the one that follows the directory."""

    pool_id: str
    is_new: bool
    is_set: bool


@dataclass(frozen=True, slots=True)
class MirrorReport(Report):
    """What a sweep of the mirror work did: how many people and groups Cognito has followed, and how many wait. Failures are those that
    fail again and again, or that can't be read."""

    done: int
    waiting: int


@dataclass(frozen=True, slots=True)
class MirrorDifference:
    """Table and pool disagree about ``entity``. ``removes``: how many things in the pool go that the table does not know."""

    entity: str
    differences: tuple[str, ...]
    removes: int = 0


@dataclass(frozen=True, slots=True)
class PoolComparison(Report):
    """The whole table against the whole pool. ``listed`` counts users, groups and members in the pool; failures still differ, or could not
    be read again, with the reason; ``stopped`` says why the brake held back every removal."""

    listed: int
    differences: tuple[MirrorDifference, ...]
    mended: int = 0


@dataclass(frozen=True, slots=True)
class Disabled(Report):
    """People whom the user pool has disabled, or has no more, and the table had enabled, by address. Failures: who could not be
    disabled there."""

    people: tuple[str, ...]
