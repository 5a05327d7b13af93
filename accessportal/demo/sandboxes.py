"""The demo's pool: who has what of it, and a week of counts that nobody took."""

from __future__ import annotations

import math
from collections.abc import Iterator
from datetime import datetime, timedelta

from accessportal.kernel.actors import system
from accessportal.sandboxes import operations
from accessportal.sandboxes.states import Stats, Status
from accessportal.sandboxes.store import pool

SANDBOXES = 24
_CLIENT = system("demo")
_TRACKS = ("intro-to-python", "data-101", "web-basics", "intro-to-python-2", "gpu-workshop", "data-201", "web-evening")
# The last day as closely as its drawing needs it, and the days before it.
_STEPS = ((timedelta(minutes=15), 24 * 4), (timedelta(hours=2), 6 * 12))
_OPENS, _CLOSES = 7, 19


def lend_some(*, now: datetime) -> None:
    """Some tracks have a sandbox each, as by the API."""
    for track in _TRACKS:
        operations.take(key=track, track=track, name_prefix="", duration_seconds=None, actor=_CLIENT, now=now)


def make_counts(*, now: datetime) -> None:
    """The pages have something to draw from the start."""
    for stats in past_counts(now):
        pool.add_count(stats)


def past_counts(now: datetime) -> Iterator[Stats]:
    """A week of working days up to ``now``, oldest last: much is lent by day, little by night and at week-ends."""
    at = now
    for step, times in _STEPS:
        for _ in range(times):
            at -= step
            yield Stats(at, _counts_at(at))


def _counts_at(at: datetime) -> dict[Status, int]:
    hour = at.hour + at.minute / 60
    is_open = at.weekday() < 5 and _OPENS < hour < _CLOSES
    crowd = math.sin(math.pi * (hour - _OPENS) / (_CLOSES - _OPENS)) if is_open else 0
    lent = round(4 + 12 * crowd + 2 * crowd * math.sin(hour * 5))
    cleaning = round(1 + 4 * crowd * abs(math.sin(hour * 3)))
    quarantined = 1 if at.day % 3 == 0 else 0
    counts = {Status.ALLOCATED: lent, Status.PENDING_DELETION: cleaning, Status.STALE: 0, Status.QUARANTINED: quarantined}
    return counts | {Status.AVAILABLE: SANDBOXES - sum(counts.values())}
