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
    """``email`` is as typed; ``key`` is the folded form that every other record refers to.

    ``version`` and ``audit_head`` say where its chain in the audit log ends; memberships are told in the same chain.
    """

    key: str
    email: str
    name: str
    state: State
    created_at: datetime
    version: int = 0
    audit_head: str = ""

    @property
    def is_enabled(self) -> bool:
        return self.state is State.ENABLED

    @property
    def entity(self) -> str:
        """The name of its chain in the audit log."""
        return person_entity(self.key)


@dataclass(frozen=True, slots=True)
class Group:
    """``group_id`` is the path (``/engineering/payments``); its ancestors are the leading parts of the path.

    ``member_count`` and ``child_count`` count the memberships and the groups directly in it, not those further below.
    """

    group_id: str
    name: str
    description: str
    state: State
    member_count: int = 0
    child_count: int = 0
    version: int = 0
    audit_head: str = ""

    @property
    def is_enabled(self) -> bool:
        return self.state is State.ENABLED

    @property
    def entity(self) -> str:
        """The name of its chain in the audit log."""
        return group_entity(self.group_id)


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


def person_entity(key: str) -> str:
    return f"person#{key}"


def group_entity(group_id: str) -> str:
    return f"group#{group_id}"
