"""Records of the workflow: the request, its states and its moves (seed 000 and the design's data model)."""

from __future__ import annotations

import enum
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from typing import Any

from accessportal.assignments.states import AssignmentKey, Comparison, Finding, Unread
from accessportal.kernel.actors import Actor
from accessportal.kernel.clock import Precise
from accessportal.kernel.counts import Count
from accessportal.kernel.pages import Page
from accessportal.kernel.runs import Report
from accessportal.rules.states import People, Question
from accessportal.rules.terms import Asked


class Status(enum.StrEnum):
    PENDING = "PENDING"
    ACTIVE = "ACTIVE"
    REVOKED = "REVOKED"
    DENIED = "DENIED"
    CANCELLED = "CANCELLED"
    LAPSED = "LAPSED"

    @property
    def is_terminal(self) -> bool:
        return not ALLOWED_MOVES[self]


ALLOWED_MOVES: dict[Status, frozenset[Status]] = {
    Status.PENDING: frozenset({Status.ACTIVE, Status.DENIED, Status.CANCELLED, Status.LAPSED}),
    Status.ACTIVE: frozenset({Status.REVOKED}),
    Status.REVOKED: frozenset(),
    Status.DENIED: frozenset(),
    Status.CANCELLED: frozenset(),
    Status.LAPSED: frozenset(),
}


class Work(enum.StrEnum):
    """What must still happen outside."""

    GRANT = "GRANT"
    REVOKE = "REVOKE"


@dataclass(frozen=True, slots=True)
class Receipt:
    """Proof of something done outside, kept on the request. ``lateness_seconds`` is, for a revocation, from ``expires_at`` to the call
    being sent. ``kept_by``: other requests that still hold the same assignment; then only the claim was given back."""

    work: Work
    job_id: str
    job_status: str
    called_at: Precise | None
    proved_at: Precise
    lateness_seconds: float | None
    kept_by: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class ApprovalDemand:
    """What the deciding rule asked for at submission: how many, and who may decide (empty groups and users: nobody). ``groups_only`` are
    groups without those below. ``admins_of``: the group whose admins decide, where the rule leaves it to them; else empty."""

    required: bool
    quorum: int
    groups: tuple[str, ...]
    users: tuple[str, ...]
    admins_of: str = ""
    groups_only: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Subject:
    """Who the access is for: the person who asks, or a group that they are in. ``groups`` has every group above, and a group itself;
    ``direct`` has no group in between; ``below`` are the groups below a group, as far as a deny rule names them. ``requester_identity``:
    the asker's account of the sign-in service."""

    subject_id: str
    name: str
    groups: frozenset[str]
    requester_name: str
    requester_identity: str = ""
    direct: frozenset[str] = frozenset()
    below: frozenset[str] = frozenset()

    def question(self, asked: Asked, *, duration_seconds: int | None, ticket_id: str | None) -> Question:
        """What the rules are asked when the subject asks for this."""
        return Question(
            asked=asked,
            subject=self.subject_id,
            subject_groups=self.groups,
            subject_direct=self.direct,
            subject_below=self.below,
            duration_seconds=duration_seconds,
            ticket_id=ticket_id,
        )


@dataclass(frozen=True, slots=True)
class Program:
    """Who asks in the name of a person: a program with its token, and what operators call it."""

    actor: Actor
    name: str


@dataclass(frozen=True, slots=True)
class Presence:
    """What the directory says of a subject now. Without ``created_at`` there is nobody, or the directory does not say since when."""

    exists: bool
    is_enabled: bool = False
    created_at: datetime | None = None
    groups: frozenset[str] = frozenset()
    direct: frozenset[str] = frozenset()


@dataclass(frozen=True, slots=True, kw_only=True)
class AccessRequest:
    """One request, whole; while PENDING ``expires_at`` is the deadline for deciding. ``evidence`` are the facts that the decision stood on,
    ``scope`` what it touches. ``identities`` tells with which account of the sign-in service requester and approvers came in: one human may
    have had two addresses. ``in_place_of``: in whose place a stand-in decided. ``held_since``: when the first of an unbroken chain began,
    if not this one. ``was_to_end_at``: until when what it held was given, where somebody ended it early. ``end_code``: for
    what the portal itself ended it early, as in the refusal that says so. ``comments``: how many its thread
    has. ``asked_back_by``: who asked back last, and ``awaits_answer`` while nobody has answered."""

    request_id: str
    kind: str
    subject_id: str
    requested_by: str
    target: Mapping[str, Any]
    account_id: str = ""
    permission_set: str = ""
    reason: str
    ticket_id: str
    duration_seconds: int
    submission_id: str
    rule_name: str
    rule_hash: str
    approval: ApprovalDemand
    evidence: Mapping[str, Any]
    scope: str
    status: Status
    requested_at: datetime
    expires_at: datetime
    extends: str = ""
    approvals: frozenset[str] = frozenset()
    decided_by: str = ""
    decided_at: datetime | None = None
    decision_reason: str = ""
    granted_at: datetime | None = None
    ended_by: str = ""
    end_code: str = ""
    was_to_end_at: datetime | None = None
    revoked_at: datetime | None = None
    work: Work | None = None
    work_due_at: Precise | None = None
    work_attempts: int = 0
    work_error: str = ""
    receipts: tuple[Receipt, ...] = ()
    version: int = 0
    audit_head: str = ""
    identities: Mapping[str, str] = field(default_factory=dict)
    in_place_of: Mapping[str, str] = field(default_factory=dict)
    held_since: datetime | None = None
    purge_at: datetime | None = None
    comments: int = 0
    last_comment_at: datetime | None = None
    asked_back_by: str = ""
    awaits_answer: bool = False

    def to_do(self, work: Work, *, due_at: datetime) -> AccessRequest:
        """As it is with ``work`` to be carried out, which nobody has tried yet."""
        return replace(self, work=work, work_due_at=due_at, work_attempts=0, work_error="")

    @property
    def holds_since(self) -> datetime:
        """Since when its subject has held the same thing without a gap, as far as it is active."""
        return self.held_since or self.decided_at or self.requested_at

    @property
    def entity(self) -> str:
        """The name of its chain in the audit log."""
        return entity_for(self.request_id)

    @property
    def served_by(self) -> People | None:
        """The groups one of which the subject must stay in; ``None`` where the access does not end with a membership."""
        kept = self.evidence.get("served_by")
        return None if kept is None else People(groups=tuple(kept["groups"]), groups_only=tuple(kept["groups_only"]))

    @property
    def asked_through(self) -> str:
        """The program that asked in the name of ``requested_by``, as an actor; empty: they asked themselves."""
        return str(self.evidence.get("asked_through", ""))

    @property
    def takes_back(self) -> str:
        """The request that gave back what this one took back, if any."""
        return str(self.evidence.get("takes_back") or "")

    @property
    def needs_answer(self) -> bool:
        """Somebody who decides has asked back, and waits for the answer."""
        return self.status is Status.PENDING and self.awaits_answer

    @property
    def over_at(self) -> datetime | None:
        """Since when it is over; ``None`` while it is open."""
        return (self.revoked_at or self.decided_at or self.expires_at) if self.status.is_terminal else None

    @property
    def decided_in_place_of(self) -> str:
        """In whose place ``decided_by`` decided; empty: by themselves."""
        return self.in_place_of.get(self.decided_by, "")

    @property
    def is_granted(self) -> bool:
        """Proved present and not being taken back."""
        return self.status is Status.ACTIVE and self.granted_at is not None and self.work is None

    def is_over(self, now: datetime) -> bool:
        """Whether its time is up, whatever ``status`` still says: deadlines are enforced on read by this one function."""
        return self.status is Status.ACTIVE and now >= self.expires_at

    def is_undecided_past_deadline(self, now: datetime) -> bool:
        return self.status is Status.PENDING and now >= self.expires_at

    def time_left(self, now: datetime) -> timedelta:
        """Zero or more; zero when it is not active."""
        return max(self.expires_at - now, timedelta(0)) if self.status is Status.ACTIVE else timedelta(0)


@dataclass(frozen=True, slots=True, kw_only=True)
class Search:
    """Which requests are looked for; what is empty is not asked. ``subject_id``: whom it is for; ``group_id``: the group that they asked to
    be in. Asked ``since`` and before ``until``."""

    ticket_id: str = ""
    subject_id: str = ""
    account_id: str = ""
    group_id: str = ""
    rule_name: str = ""
    status: Status | None = None
    since: datetime | None = None
    until: datetime | None = None

    @property
    def asked(self) -> tuple[str, ...]:
        """The names of what is asked beside the time, first what leaves the fewest requests: the first of them is looked up, the others
        are looked for among what that finds."""
        names = ("ticket_id", "subject_id", "account_id", "group_id", "rule_name", "status")
        return tuple(name for name in names if getattr(self, name))


@dataclass(frozen=True, slots=True, kw_only=True)
class Found(Page["AccessRequest"]):
    """A page of what was looked for. ``total``: how many there are, where that is known."""

    total: Count | None = None


def entity_for(request_id: str) -> str:
    return f"request#{request_id}"


@dataclass(frozen=True, slots=True)
class Approver:
    """Somebody who may decide a request right now. ``identity``: the account of the sign-in service that is theirs, if one."""

    email: str
    name: str
    identity: str = ""


@dataclass(frozen=True, slots=True)
class Approvers:
    """Who may decide, computed live. ``is_fallback``: the rule's own approvers are fewer than the quorum needs (a deleted group, everybody
    disabled), so the operators decide. ``missing_groups`` are the rule's approver groups that do not exist.
    Not ``is_whole``: enough were found, and some groups below were not looked through."""

    people: tuple[Approver, ...]
    quorum: int
    is_fallback: bool
    missing_groups: tuple[str, ...]
    is_whole: bool = True

    @property
    def can_decide(self) -> bool:
        return len(self.people) >= self.quorum


@dataclass(frozen=True, slots=True)
class Tally:
    """How many approvals count now, of how many that are needed. ``is_fallback``: an operator who stands in is among them."""

    given: int
    quorum: int
    is_fallback: bool

    @property
    def missing(self) -> int:
        return max(0, self.quorum - self.given)


@dataclass(frozen=True, slots=True)
class WayIn:
    """A group whose people a rule serves. ``role`` is what may be asked for in it; empty: its admins can let somebody in."""

    group_id: str
    name: str
    role: str


@dataclass(frozen=True, slots=True)
class Preview:
    """What would happen if the form were sent now: ``at_once``, ``needs_approval`` or ``impossible``, then with the ``reason``, the
    ``remedies``, and the ``field`` to change, if one. ``held_until`` ends the longest access to the same that the subject holds;
    ``served_by``: the groups that they must not leave; ``facts``: the kind's own; ``ways_in``: where they would be served;
    ``people``: how many a group means, where they were counted; ``needs_group``: only to be in a group would help, one of ``ways_in``,
    or the one that is asked for, into which those in ``writes_to`` put people."""

    outcome: str
    reason: str
    rule_name: str = ""
    max_duration_seconds: int = 0
    default_duration_seconds: int = 0
    longest_by_any_rule_seconds: int = 0
    duration_seconds: int | None = None
    approvers: Approvers | None = None
    quorum: int = 0
    ticket_required: bool = False
    ticket_pattern: str = ""
    remedies: tuple[str, ...] = ()
    misses: tuple[tuple[str, tuple[str, ...]], ...] = ()
    session_seconds: int = 0
    field: str = ""
    held_until: datetime | None = None
    held_by_request: str = ""
    facts: Mapping[str, str] | None = None
    max_total_seconds: int = 0
    served_by: tuple[str, ...] = ()
    rule_description: str = ""
    ways_in: tuple[WayIn, ...] = ()
    people: int | None = None
    needs_group: bool = False
    writes_to: tuple[Approver, ...] = ()


@dataclass(frozen=True, slots=True)
class Described:
    """A request in words for pages and commands. ``title`` is like ``payments-prod · ReadOnlyAccess``; ``facts`` are the target's, each a
    label and a value; ``session_seconds``: how long an open session may outlive it."""

    title: str
    subject_name: str
    requested_by_name: str
    facts: tuple[tuple[str, str], ...]
    session_seconds: int = 0


@dataclass(frozen=True, slots=True)
class PlaceInLine:
    """Where an approved request stands in the line for what it waits for: so many are ``before`` it, and its place lapses at ``lapses_at``.
    ``expected``: between which moments its turn comes; ``None``: not known."""

    before: int
    lapses_at: datetime
    expected: tuple[datetime, datetime] | None

    @property
    def place(self) -> int:
        """Counted from 1."""
        return self.before + 1


@dataclass(frozen=True, slots=True)
class RestoreReport(Report):
    """What of before a restore of the tables was ended, by request id, because it may have been ended in the lost time."""

    ended: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class TickReport(Report):
    """What a tick did. ``waiting`` are those that wait for something outside, ``departed`` those that were ended or cancelled because
    of what became of their subject."""

    lapsed: int
    expired: int
    granted: int
    revoked: int
    departed: int
    waiting: int


@dataclass(frozen=True, slots=True)
class SubjectsReport(Report):
    """What came of holding every open request against the directory: ``checked`` requests, of which ``ended`` and ``cancelled``;
    ``stopped`` is the brake's reason, or empty.
    """

    checked: int
    ended: int
    cancelled: int


@dataclass(frozen=True, slots=True)
class FreezeReport(Report):
    """The leases that were proved to be frozen, or to be so no longer; how many wait for a proof."""

    frozen: tuple[str, ...]
    unfrozen: tuple[str, ...]
    waiting: int


@dataclass(frozen=True, slots=True)
class BudgetReport(Report):
    """The leases whose holders were warned of the cost, and those that were ordered to be frozen or ended for it."""

    warned: tuple[str, ...]
    frozen: tuple[str, ...]
    ended: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class DeadClaim:
    """An assignment, or the lease of an account, that is still claimed by a request that is not active any more."""

    key: AssignmentKey
    request_id: str
    finding_id: str
    lease_id: str = ""


@dataclass(frozen=True, slots=True)
class ReconcileReport(Report):
    """Every difference between Identity Center and the claims, and what was done about it: ``mended`` with proof, or ``waiting`` with the
    reason. ``unread`` are lists that could not be had, ``unreadable`` items of ours. ``not_ours`` is there without being made by the
    portal, and is no difference."""

    comparison: Comparison
    listed: int
    missing: tuple[Finding, ...]
    unknown: tuple[Finding, ...]
    left_over: tuple[Finding, ...]
    dead_claims: tuple[DeadClaim, ...]
    not_ours: tuple[Finding, ...]
    mended: int
    waiting: tuple[str, ...]
    unread: tuple[Unread, ...]
    unreadable: tuple[str, ...]
