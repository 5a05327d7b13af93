"""Reading assignments."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping

from accessportal.assignments import comparison_store, store
from accessportal.assignments.states import Assignment, AssignmentKey, AssignmentState, Comparison, Comparisons, Found
from accessportal.assignments.store import every_assignment
from accessportal.kernel.pages import Page, Unreadable

__all__ = [
    "comparisons",
    "every_assignment",
    "every_in",
    "find",
    "found_by",
    "get",
    "get_many",
    "id_of",
    "list_by_state",
]


def find(*, key: AssignmentKey) -> Assignment | None:
    """Strongly read; ``None`` when it was never claimed."""
    return store.find(key)


def id_of(*, key: AssignmentKey) -> str:
    """The id that our record of it has, if there is one."""
    return store.id_for(key)


def get(*, assignment_id: str) -> Assignment | None:
    """Strongly read; ``None`` when there is no such item."""
    return store.get(assignment_id)


def get_many(*, assignment_ids: Iterable[str], past: Callable[[Unreadable], object]) -> Mapping[str, Assignment]:
    """Those that there are, by id, strongly read together; ``past`` as in :func:`every`."""
    return store.get_many(assignment_ids, past=past)


def list_by_state(*, state: AssignmentState, cursor: str | None = None, limit: int = 50) -> Page[Assignment]:
    """Assignments in ``state``, longest unchanged first."""
    return store.page_by_state(state, cursor=cursor, limit=limit)


def every_in(*, state: AssignmentState, past: Callable[[Unreadable], object] | None = None) -> Iterator[Assignment]:
    """All of them in ``state``, longest unchanged first; ``past`` as in :func:`every`."""
    return store.every_in(state, past=past)


def comparisons() -> Comparisons:
    """The comparison with IAM Identity Center that is under way, and the last one that was finished; strongly read."""
    return comparison_store.current()


def found_by(*, comparison: Comparison) -> Found:
    """Everything that a comparison found."""
    return comparison_store.read_found(comparison)
