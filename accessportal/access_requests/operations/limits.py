"""How much one person may ask for, and how often: refused before anything is resolved, decided or written."""

from __future__ import annotations

from datetime import datetime

from accessportal.access_requests import store
from accessportal.access_requests.config import current
from accessportal.kernel.actors import Actor
from accessportal.kernel.counts import counted
from accessportal.kernel.errors import NotAllowed
from accessportal.store.coordination import reserve_slot

_MINUTE_SECONDS = 60.0


def require_patience(*, actor: Actor, now: datetime) -> None:
    """Count that ``actor`` asks: a minute's worth at once, then one by one as the minute goes on. One conditional write. NotAllowed when it
    is too often. Programs have the rate of their tokens."""
    most = current().asks_per_minute
    if not most or actor.is_system or actor.is_program:
        return
    gap = _MINUTE_SECONDS / most
    # The first of them is queued behind nobody.
    longest = gap * (most - 1)
    if reserve_slot(f"asks:{actor.name}", gap_seconds=gap, longest_wait_seconds=longest, now=now) is None:
        text = f"You have asked {most} times within a minute, as often as one person may. Wait a minute, then send it again."
        raise NotAllowed(text, code="asked_too_often")


def require_room(*, subject_id: str, open_now: int, request_id: str) -> None:
    """Raise NotAllowed when as many requests as there may be are held or wait, and this is none of them. The list of what is ``open_now``
    may lag a moment: some that are sent at the same time may pass together."""
    most = current().most_open
    if most and open_now >= most and store.get(request_id) is None:
        who = "The group has" if subject_id.startswith("/") else "You have"
        held = counted(most, "request that is", "requests that are")
        text = f"{who} {held} active or waiting, as many as there may be. End or cancel one first."
        raise NotAllowed(text, code="too_many_open")
