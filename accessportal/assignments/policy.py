"""Pure decisions about driving an assignment."""

from __future__ import annotations

import enum
from datetime import datetime, timedelta

from accessportal.assignments.states import Assignment, AssignmentKey, AssignmentState, Drift, Finding
from accessportal.catalog.states import PrincipalType
from accessportal.kernel.moments import is_recent

# A worker holds an assignment this long; one that dies holds it no longer.
HOLD_SECONDS = 60.0
# No call is sent with less than this left of the hold: connect and read time-outs together are 13 s (aws.clients), and a call
# of a worker that has lost its hold could undo what its successor proved.
CALL_MARGIN_SECONDS = 20.0
# How long one attempt waits for a running job before it hands back.
PATIENCE_SECONDS = 20.0
# How long after its call a finished job is trusted to have done what the list does not show yet.
LISTED_WITHIN_SECONDS = 90.0
# What changed less than this ago is being driven by somebody.
_SETTLING = timedelta(minutes=5)
_POLL_GAPS_SECONDS = (0.9, 0.6, 0.6, 0.9, 1.5, 1.5, 2.5)


class Step(enum.Enum):
    """What an assignment needs next, by its state and whether anybody claims it."""

    NOTHING = "nothing"
    START_CREATING = "start creating"
    SEND_CREATE = "send create"
    POLL_CREATION = "poll creation"
    CHECK_PRESENT = "check present"
    START_DELETING = "start deleting"
    SEND_DELETE = "send delete"
    POLL_DELETION = "poll deletion"


def next_step(assignment: Assignment) -> Step:
    """The one decision table of the state machine."""
    wanted, has_job = assignment.is_wanted, bool(assignment.job_id)
    match assignment.state:
        case AssignmentState.ABSENT:
            return Step.START_CREATING if wanted else Step.NOTHING
        case AssignmentState.CREATING:
            if has_job:
                return Step.POLL_CREATION
            # Nobody wants it any more and it is not known whether the creation was ever sent: deleting settles it, because
            # a running creation answers the deletion with a conflict.
            return Step.SEND_CREATE if wanted else Step.START_DELETING
        case AssignmentState.PRESENT:
            return Step.CHECK_PRESENT if wanted else Step.START_DELETING
        case AssignmentState.DELETING:
            return Step.POLL_DELETION if has_job else Step.SEND_DELETE


def poll_gap_seconds(polls: int) -> float:
    """Seconds to wait before poll number ``polls`` (from 0): short at first, because most jobs take about two seconds."""
    return _POLL_GAPS_SECONDS[min(polls, len(_POLL_GAPS_SECONDS) - 1)]


def judge(key: AssignmentKey, record: Assignment | None, *, is_given: bool, now: datetime) -> Finding | None:
    """Say what is wrong with an assignment that is there; ``is_given``: whether a rule gives its permission set. A group's is judged by its
    record alone: companies have many of their own, and the portal makes none without one."""
    if record is None:
        is_ours = is_given and key.principal_type is PrincipalType.USER
        return Finding(Drift.UNKNOWN if is_ours else Drift.NOT_OURS, key, claims=())
    return Finding(Drift.LEFT_OVER, key, claims=()) if is_left_to_itself(record, now) else None


def is_held(assignment: Assignment, now: datetime) -> bool:
    """Whether it must be there."""
    return assignment.is_wanted and (assignment.state is AssignmentState.PRESENT or not is_settling(assignment, now))


def is_left_to_itself(assignment: Assignment, now: datetime) -> bool:
    """Nobody claims it. What is recorded as present, or as being made or deleted, may have somebody at it for a while."""
    return not assignment.is_wanted and (assignment.state is AssignmentState.ABSENT or not is_settling(assignment, now))


def is_settling(assignment: Assignment, now: datetime) -> bool:
    """Whether it changed a moment ago."""
    return is_recent(assignment.changed_at, now=now, within=_SETTLING)
