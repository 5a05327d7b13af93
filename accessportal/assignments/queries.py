"""Reading assignments."""

from __future__ import annotations

from accessportal.assignments import store
from accessportal.assignments.states import Assignment, AssignmentKey, AssignmentState
from accessportal.kernel.pages import Page


def find(*, key: AssignmentKey) -> Assignment | None:
    """Strongly read; ``None`` when it was never claimed."""
    return store.find(key)


def id_of(*, key: AssignmentKey) -> str:
    """The id that our record of it has, if there is one."""
    return store.id_for(key)


def get(*, assignment_id: str) -> Assignment | None:
    """Strongly read; ``None`` when there is no such item."""
    return store.get(assignment_id)


def list_by_state(*, state: AssignmentState, cursor: str | None = None, limit: int = 50) -> Page[Assignment]:
    """Assignments in ``state``, longest unchanged first."""
    return store.page_by_state(state, cursor=cursor, limit=limit)
