"""What ends when a person leaves, or a group: words for whoever disables, removes or deletes them."""

from __future__ import annotations

from accessportal.access_requests.queries.lists import list_open
from accessportal.access_requests.states import Status
from accessportal.kernel.pages import Unreadable

ACCESS_ENDS = "What they hold by requests ends within a minute, and what they still wait for is cancelled."
ACCESS_OF_GROUP_ENDS = (
    "Access that a rule gave for being in it ends within a minute, unless the rule says otherwise or another group still gives it."
)


def access_that_ends(*, subject_id: str) -> str:
    """:data:`ACCESS_ENDS`, and how many requests are active now."""
    unreadable: list[Unreadable] = []
    active = sum(one.status is Status.ACTIVE for one in list_open(subject_id=subject_id, past=unreadable.append))
    return " ".join([f"{ACCESS_ENDS} Active now: {active}.", *map(str, unreadable)])
