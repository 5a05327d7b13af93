"""Reading assignments."""

from accessportal.assignments.comparison_store import comparisons, found_by
from accessportal.assignments.store import every_assignment, every_in, find, get, get_many, id_of, list_by_state

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
