"""Records of the assignments: what IAM Identity Center holds, and which requests claim it."""

from __future__ import annotations

import enum
import hashlib
from dataclasses import dataclass, field

from accessportal.catalog.states import PrincipalType
from accessportal.kernel.clock import Precise


class AssignmentState(enum.StrEnum):
    ABSENT = "ABSENT"
    CREATING = "CREATING"
    PRESENT = "PRESENT"
    DELETING = "DELETING"


ALLOWED_MOVES: dict[AssignmentState, frozenset[AssignmentState]] = {
    AssignmentState.ABSENT: frozenset({AssignmentState.CREATING, AssignmentState.PRESENT}),
    # To DELETING when nobody wants it any more and the creation's call was never heard of again.
    AssignmentState.CREATING: frozenset({AssignmentState.PRESENT, AssignmentState.ABSENT, AssignmentState.DELETING}),
    AssignmentState.PRESENT: frozenset({AssignmentState.DELETING, AssignmentState.ABSENT}),
    AssignmentState.DELETING: frozenset({AssignmentState.ABSENT, AssignmentState.PRESENT}),
}


@dataclass(frozen=True, slots=True)
class AssignmentKey:
    """What IAM Identity Center knows an assignment by (besides the one instance)."""

    principal_type: PrincipalType
    principal_id: str
    account_id: str
    permission_set_arn: str


@dataclass(frozen=True, slots=True)
class Assignment:
    """``claims`` are the ids of the requests that hold it; ``fence`` grows with every change of ``state``; one worker alone drives it until
    ``busy_until``. ``job_id`` is the job of the present CREATING or DELETING (empty: intent is written, the call's answer is not), else of
    the last one; ``called_at`` is when its call was sent."""

    assignment_id: str
    key: AssignmentKey
    state: AssignmentState
    fence: int
    changed_at: Precise
    claims: frozenset[str] = frozenset()
    job_id: str = ""
    called_at: Precise | None = None
    proved_at: Precise | None = None
    busy_until: Precise | None = None
    version: int = 0
    audit_head: str = ""

    @property
    def entity(self) -> str:
        """The name of its chain in the audit log."""
        return f"assignment#{self.assignment_id}"

    @property
    def is_wanted(self) -> bool:
        return bool(self.claims)


OUTSIDE_CLAIM = "outside"
"""The claim of an assignment that was found and adopted: held from outside, the portal never takes it away."""


class Drift(enum.StrEnum):
    """How our records and IAM Identity Center differ."""

    MISSING = "missing"
    """Claimed and once proved present, but not there."""
    UNKNOWN = "unknown"
    """There, of a kind that the portal makes, but never made by it."""
    NOT_OURS = "not_ours"
    """There, of a kind that the portal does not make without a record: a group's, or with a permission set that no rule gives."""
    LEFT_OVER = "left_over"
    """There, though the portal has no claim on it any more."""


class Remedy(enum.StrEnum):
    """What an operator may have done about it."""

    REPAIR = "repair"
    """Make again what is missing, remove what is left over."""
    ADOPT = "adopt"
    """Record what is unknown as held from outside."""
    REMOVE_UNKNOWN = "remove_unknown"
    """Remove what is unknown."""


def finding_id_for(what: str, key: AssignmentKey, *more: str) -> str:
    """The same for the same difference in every comparison, so that somebody can choose it."""
    text = "\0".join((what, key.principal_type, key.principal_id, key.account_id, key.permission_set_arn, *more))
    return hashlib.sha256(text.encode()).hexdigest()[:12]


@dataclass(frozen=True, slots=True)
class Finding:
    drift: Drift
    key: AssignmentKey
    claims: tuple[str, ...]
    finding_id: str = field(init=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "finding_id", finding_id_for(self.drift, self.key))


@dataclass(frozen=True, slots=True)
class Unread:
    """A list that IAM Identity Center did not give, and its words; without ``account_id``: that of the accounts."""

    permission_set_arn: str
    account_id: str
    error: str


@dataclass(frozen=True, slots=True)
class Found:
    """What was read from IAM Identity Center and held against our records, but for what is in ``unread``."""

    listed: int = 0
    findings: tuple[Finding, ...] = ()
    unread: tuple[Unread, ...] = ()


@dataclass(frozen=True, slots=True)
class Comparison:
    """How far a comparison is: ``pairs_read`` of ``pairs`` lists (of a permission set in an account). It goes on after ``account_id`` of
    ``permission_set_arn``, first counting the pairs, then reading them. ``parts``: under how many numbers it keeps what it found. ``step``
    grows with every write; one worker alone goes on with it until ``busy_until``."""

    comparison_id: str
    begun_at: Precise
    pairs: int
    pairs_read: int
    listed: int
    parts: int
    step: int
    is_counted: bool = False
    permission_set_arn: str = ""
    account_id: str = ""
    busy_until: Precise | None = None
    finished_at: Precise | None = None


@dataclass(frozen=True, slots=True)
class Comparisons:
    """The comparison that is under way, and the last one that was finished."""

    open: Comparison | None
    last: Comparison | None
