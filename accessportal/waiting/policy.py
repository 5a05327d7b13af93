"""Pure decisions about a line: when a turn is expected to come."""

from __future__ import annotations

import heapq
import statistics
from collections.abc import Sequence
from datetime import datetime, timedelta

from accessportal.waiting.states import Expected

# Nobody is told a moment that hangs on more than so many others.
_MOST_AHEAD = 1_000
# From a thing's end to its cleaning, and from its cleaning to the hand-over: the jobs that do it run every minute.
_RUN = timedelta(seconds=60)


def cleaning_of_late(seconds: Sequence[int]) -> float | None:
    """The median of the last cleanings; ``None``: none is known."""
    return statistics.median(seconds) if seconds else None


def expected(
    *, ahead: Sequence[int], ends: Sequence[datetime], cleaning_seconds: float | None, grace_seconds: int = 0, now: datetime
) -> Expected | None:
    """When the turn comes of somebody before whom ``ahead`` wait, each for so many seconds: by the ``ends`` of what is lent or cleaned (for
    these: when that began), and by how long cleaning takes. ``None``: it can't be told. It comes earlier where somebody gives back."""
    if cleaning_seconds is None or not ends or len(ahead) > _MOST_AHEAD:
        return None
    cleaning = timedelta(seconds=cleaning_seconds)
    earliest = _turn(ahead, [max(end, now) + cleaning for end in ends], cleaning)
    # Everybody lets the grace pass, each job has just missed it, and cleaning takes twice as long.
    late = timedelta(seconds=grace_seconds) + 2 * _RUN + 2 * cleaning
    return Expected(max(earliest, now), _turn(ahead, [max(end, now) + late for end in ends], late))


def _turn(ahead: Sequence[int], free_at: list[datetime], between: timedelta) -> datetime:
    """When the next thing becomes free after those ``ahead`` have had theirs, ``between`` being what passes from an end to the next."""
    heapq.heapify(free_at)
    for seconds in ahead:
        heapq.heapreplace(free_at, free_at[0] + timedelta(seconds=seconds) + between)
    return free_at[0]
