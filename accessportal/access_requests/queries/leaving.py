"""What stays when a person leaves: words for whoever disables, removes or deletes them."""

from __future__ import annotations

from accessportal.access_requests.queries.lists import list_open
from accessportal.access_requests.states import Status
from accessportal.rules.states import GROUP

ACCESS_STAYS = "AWS access that is active goes on until its end, unless somebody ends it."


def access_that_stays(*, subject_id: str) -> str:
    """:data:`ACCESS_STAYS`, and how many requests it is about now. Memberships don't count: they go with the person."""
    active = sum(one.status is Status.ACTIVE and one.kind != GROUP for one in list_open(subject_id=subject_id))
    return f"{ACCESS_STAYS} Active now: {active}."
