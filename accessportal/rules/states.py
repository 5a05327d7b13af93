"""Records of the rules: who may ask for what (design, data model, AccessRules)."""

from __future__ import annotations

import enum
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime

from accessportal.kernel.errors import InvalidRequest
from accessportal.kernel.pages import Unreadable
from accessportal.rules.terms import Asked, Terms

EVERYBODY = "/"
"""As a group in ``subjects``: all people."""
SMALLEST_DURATION_SECONDS = 60
LONGEST_TICKET = 200


class Effect(enum.StrEnum):
    ALLOW = "allow"
    DENY = "deny"


class EndsWith(enum.StrEnum):
    """When access that a rule gave ends at the latest: at its time, or before when the rule serves the subject no longer."""

    MEMBERSHIP = "membership"
    TIME = "time"


@dataclass(frozen=True, slots=True)
class People:
    """Groups (each with everything below it; in ``subjects`` ``/`` is everybody), ``groups_only`` (each without the groups below: who is
    directly in it) and single users by folded address. Empty means nobody."""

    groups: tuple[str, ...] = ()
    users: tuple[str, ...] = ()
    groups_only: tuple[str, ...] = ()

    @property
    def names(self) -> tuple[str, ...]:
        """Everything named, in words: ``/security`` with the groups below, ``/security alone`` without them."""
        return (*self.groups, *(f"{group} alone" for group in self.groups_only), *self.users)


@dataclass(frozen=True, slots=True)
class Approval:
    """Without ``approvers`` those approve who stand in by the kind of the rule (:class:`terms.Terms`)."""

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
    """One version of a rule; ``position`` is its place in the file, from 0. A deny has no durations (whole seconds), approval or ticket
    worth reading. ``ends_with`` is ``None`` for a rule from before there was such a key: then access ends at its time. ``is_removed``: in a
    history, this version took it away."""

    name: str
    version: int
    position: int
    hash: str
    effect: Effect
    subjects: People
    terms: Terms
    default_duration_seconds: int
    min_duration_seconds: int
    max_duration_seconds: int
    approval: Approval
    ticket: Ticket
    applied_at: datetime | None = None
    applied_by: str = ""
    description: str = ""
    is_removed: bool = False
    ends_with: EndsWith | None = None
    max_total_seconds: int = 0

    @property
    def kind(self) -> str:
        return self.terms.kind

    @property
    def total_seconds(self) -> int:
        """The longest that the same thing is held without a gap: the longest of one request, unless the rule gives more."""
        return self.max_total_seconds or self.max_duration_seconds

    def longest_after(self, held_seconds: int) -> int:
        """Tell the longest that may still be asked for after the same thing was held for ``held_seconds``. Of what is left, whole minutes:
        the rest is gone before anybody has asked for it."""
        left = max(0, self.total_seconds - held_seconds)
        return min(self.max_duration_seconds, left - left % 60 if held_seconds else left)

    @property
    def serves_by_membership(self) -> bool:
        """Whether access ends with the membership by which the rule gave it."""
        return self.ends_with is EndsWith.MEMBERSHIP

    @property
    def asks_admins(self) -> bool:
        """Whether the admins of the group that is asked for are the approvers."""
        return self.terms.asks_admins and self.approval.required and self.approval.approvers == People()


@dataclass(frozen=True, slots=True)
class Question:
    """What a decision stands on; a fact that could not be read is ``None``, which refuses, and so are duration and ticket of an empty form,
    which are not judged. ``subject_groups`` include every group above, and a group itself; ``subject_direct`` are a person's own;
    ``subject_below`` those below a group that a deny names. ``held_seconds``: without a gap until now."""

    asked: Asked
    subject: str
    subject_groups: frozenset[str] | None
    subject_direct: frozenset[str] = frozenset()
    subject_below: frozenset[str] = frozenset()
    held_seconds: int = 0
    duration_seconds: int | None = None
    ticket_id: str | None = None

    @property
    def kind(self) -> str:
        return self.asked.kind


@dataclass(frozen=True, slots=True)
class Miss:
    """Why one rule did not decide: every reason, in words, and what would change it."""

    rule_name: str
    reasons: tuple[str, ...]
    remedies: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class RuleDecision:
    """The answer and its explanation. ``rule`` decided, or ``None``. Of a refusal whose remedy is one input, ``field`` names it
    (``duration``, ``ticket_id``, or of the kind's ``inputs``). ``max_duration_seconds`` is the most that any matching rule would admit here
    (0: none)."""

    allowed: bool
    code: str
    reason: str
    rule: Rule | None
    misses: tuple[Miss, ...]
    remedies: tuple[str, ...]
    max_duration_seconds: int
    field: str = ""


class Reaching(enum.StrEnum):
    """What a rule makes of the people in a group."""

    APPROVES = "approves"
    ADMINS_APPROVE = "admins approve"
    SERVED = "is served"
    REFUSED = "is refused"


@dataclass(frozen=True, slots=True)
class Reach:
    """One rule that reaches a group, and by which name: the group's own, or ``through`` a group above it."""

    rule_name: str
    reaching: Reaching
    through: str


@dataclass(frozen=True, slots=True)
class RuleSet:
    """All rules in force, in file order (``version`` 0: nothing was ever loaded). ``audit_head``, the hash of the event that put them in
    force, is new with every set. ``newer`` are about kinds that this version does not know: nothing that it decides depends on them."""

    version: int
    rules: tuple[Rule, ...]
    audit_head: str = ""
    applied_at: datetime | None = None
    applied_by: str = ""
    newer: tuple[Unreadable, ...] = ()


@dataclass(frozen=True, slots=True)
class RuleHead:
    """Where the audit chain of the rule sets must end: the newest set, and its event's hash."""

    version: int
    audit_head: str


@dataclass(frozen=True, slots=True)
class RuleVersions:
    """All that is written of a rule, or of the rule sets, up to ``version``: of each version the hash of its words as they are, or the
    names of the set's rules in order (``of_each``: with their versions). ``is_removed``: the newest took the rule away."""

    entity: str
    version: int
    audit_head: str
    versions: Mapping[int, str]
    of_each: Mapping[int, tuple[int, ...]] = field(default_factory=dict)
    is_removed: bool = False


@dataclass(frozen=True, slots=True)
class RuleProblem:
    """One mistake in a rules file: ``line`` counts from 1, ``path`` is like ``rules[2].duration.max``, ``message`` says the rule for this
    place and how it is broken, ``remedy`` what to write instead."""

    line: int
    path: str
    rule_name: str
    message: str
    remedy: str

    def __str__(self) -> str:
        place = f"line {self.line}, {self.path}" if self.path else f"line {self.line}"
        rule = f" (rule {self.rule_name})" if self.rule_name else ""
        return f"{place}{rule}: {self.message} {self.remedy}".rstrip()


class InvalidRules(InvalidRequest):
    """A rules file with mistakes: all of them, in the order of their lines."""

    def __init__(self, errors: tuple[RuleProblem, ...]) -> None:
        count = "1 mistake" if len(errors) == 1 else f"{len(errors)} mistakes"
        lines = "".join(f"\n  {error}" for error in errors)
        super().__init__(f"The rules file has {count}; nothing was changed.{lines}", code="rules_invalid", field="rules")
        self.errors = errors


@dataclass(frozen=True, slots=True)
class FieldChange:
    """One difference between two versions of a rule, in words (``old`` or ``new`` is empty where there is nothing)."""

    field: str
    old: str
    new: str


@dataclass(frozen=True, slots=True)
class RuleChange:
    old: Rule
    new: Rule
    fields: tuple[FieldChange, ...]


@dataclass(frozen=True, slots=True)
class Impact:
    """Who gains and who loses what by the change of one rule, in words. Each rule is looked at alone."""

    rule_name: str
    gains: tuple[str, ...]
    loses: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class RulePlan:
    """What loading a file changes against the rules in force (``base_version``). ``is_reordered``: rules that stay stand in another order,
    so another may decide. ``warnings`` are about what the file names and is not there now; they stop nothing."""

    base_version: int
    rules: tuple[Rule, ...]
    added: tuple[Rule, ...]
    changed: tuple[RuleChange, ...]
    removed: tuple[Rule, ...]
    unchanged: tuple[str, ...]
    is_reordered: bool
    impacts: tuple[Impact, ...] = ()
    warnings: tuple[str, ...] = ()

    @property
    def is_empty(self) -> bool:
        """Nothing to apply: the file says what is in force already."""
        return not (self.added or self.changed or self.removed or self.is_reordered)
