"""Records of the rules: who may ask for what (design, data model, AccessRules)."""

from __future__ import annotations

import enum
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime


class Effect(enum.StrEnum):
    ALLOW = "allow"
    DENY = "deny"


@dataclass(frozen=True, slots=True)
class People:
    """Groups (each with everything below it) and single users by folded address. Empty means nobody.

    In ``subjects`` the group ``/`` means everybody.
    """

    groups: tuple[str, ...] = ()
    users: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Targets:
    """``ous`` (each with all below), ``accounts`` (ids or names), ``tags`` (key to accepted values).

    A target matches when it is in one of the OUs or accounts (either list; both empty means any account) and has an
    accepted value for every tag key.
    """

    ous: tuple[str, ...] = ()
    accounts: tuple[str, ...] = ()
    tags: Mapping[str, tuple[str, ...]] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Approval:
    required: bool
    quorum: int
    approvers: People


@dataclass(frozen=True, slots=True)
class Ticket:
    """``pattern`` is a regular expression that the whole ticket must match; empty: any text."""

    required: bool
    pattern: str


@dataclass(frozen=True, slots=True)
class Rule:
    """One version of a rule. ``position`` is its place in the file, from 0. ``hash`` is over its canonical content.

    Durations are whole seconds. A deny rule has no durations, approval or ticket worth reading.
    """

    name: str
    version: int
    position: int
    hash: str
    kind: str
    effect: Effect
    subjects: People
    targets: Targets
    permission_sets: tuple[str, ...]
    default_duration_seconds: int
    min_duration_seconds: int
    max_duration_seconds: int
    approval: Approval
    ticket: Ticket
    applied_at: datetime | None = None
    applied_by: str = ""
    description: str = ""


@dataclass(frozen=True, slots=True)
class Question:
    """Everything a decision stands on; facts are ``None`` where they could not be read, which refuses.

    ``subject`` is a folded address or a group path; ``subject_groups`` are the groups that it is in, ancestors included.
    ``duration_seconds`` and ``ticket_id`` are ``None`` while a form is still empty: then they are not judged.
    """

    kind: str
    subject: str
    subject_groups: frozenset[str] | None
    account_id: str
    account_name: str
    ou_path: str | None
    tags: Mapping[str, str] | None
    permission_set: str
    duration_seconds: int | None = None
    ticket_id: str | None = None


@dataclass(frozen=True, slots=True)
class Miss:
    """Why one rule did not decide: every reason, in words, and what would change it."""

    rule_name: str
    reasons: tuple[str, ...]
    remedies: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class RuleDecision:
    """The answer and its whole explanation.

    ``rule`` is the rule that decided (the allow, or the deny that refused), or ``None`` when none matched. For a refusal
    whose remedy is one input, ``field`` names it (``duration``, ``ticket_id``, ``account``, ``permission_set``).
    ``max_duration_seconds`` is the most that any matching rule would admit for this subject and target (0: none).
    ``remedies`` are sentences that say what would change the answer.
    """

    allowed: bool
    code: str
    reason: str
    rule: Rule | None
    misses: tuple[Miss, ...]
    remedies: tuple[str, ...]
    max_duration_seconds: int
    field: str = ""
