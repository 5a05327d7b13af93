"""Records of the directory: people, groups, memberships (table ``AccessManagement``, seed 001)."""

from __future__ import annotations

import enum
from dataclasses import dataclass
from datetime import datetime


class State(enum.StrEnum):
    ENABLED = "enabled"
    DISABLED = "disabled"


class GroupRole(enum.StrEnum):
    ADMIN = "admin"
    CONTRIBUTOR = "contributor"
    READER = "reader"


@dataclass(frozen=True, slots=True)
class Person:
    """``email`` is as typed; ``key`` is the folded form that every other record refers to."""

    key: str
    email: str
    name: str
    state: State
    created_at: datetime

    @property
    def is_enabled(self) -> bool:
        return self.state is State.ENABLED


@dataclass(frozen=True, slots=True)
class Group:
    """``group_id`` is the path (``/engineering/payments``); its ancestors are the leading parts of the path."""

    group_id: str
    name: str
    description: str
    state: State


@dataclass(frozen=True, slots=True)
class Membership:
    person: str
    group_id: str
    role: GroupRole


@dataclass(frozen=True, slots=True)
class Crowd:
    """The enabled people in some groups and everything below them, by folded address, each once, sorted.

    ``missing_groups`` are the asked groups that do not exist or are disabled: they have nobody.
    """

    people: tuple[Person, ...]
    missing_groups: tuple[str, ...] = ()
