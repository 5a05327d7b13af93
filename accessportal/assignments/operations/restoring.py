"""What a restore of the tables leaves to do for assignments."""

from __future__ import annotations

from accessportal.assignments import store
from accessportal.assignments.states import Assignment, AssignmentState
from accessportal.audit.states import Draft
from accessportal.kernel.actors import Actor
from accessportal.kernel.clock import Clock
from accessportal.store.transactions import Overtaken


def raise_fences(*, to: int, actor: Actor, clock: Clock) -> int:
    """Leave no assignment that may be there with a fence below ``to``, and say how many had. Absent ones get theirs when they are made. May
    be repeated at any time."""
    raised = 0
    for state in (AssignmentState.CREATING, AssignmentState.PRESENT, AssignmentState.DELETING):
        for assignment in list(store.every_in(state)):
            raised += _raise(assignment, to, actor, clock)
    return raised


def _raise(seen: Assignment, to: int, actor: Actor, clock: Clock) -> bool:
    assignment: Assignment | None = seen
    while assignment is not None and assignment.fence < to:
        draft = Draft("assignment.fence_raised", assignment.key.principal_id, {"fence": to})
        try:
            store.raise_fence(assignment, to, draft=draft, actor=actor, now=clock.now())
        except Overtaken:
            assignment = store.get(assignment.assignment_id)
        else:
            return True
    return False
