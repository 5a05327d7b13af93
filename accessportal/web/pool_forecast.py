"""When a pool runs dry: from what is free, who waits, what comes back when, and how many were handed out of late. Pure."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

# Beyond that nobody knows how many will ask.
HORIZON = timedelta(days=14)
# From less time than this no pace can be told.
_SHORTEST_TO_TELL = timedelta(hours=6)


@dataclass(frozen=True, slots=True)
class Supply:
    """What a forecast stands on. ``comes_back``: when each thing that is lent or being cleaned is free again, as far as known."""

    free: int
    waiting: int
    comes_back: tuple[datetime, ...]


@dataclass(frozen=True, slots=True)
class Forecast:
    """``is_dry``: nothing is free that nobody waits for; then ``free_at`` is when there is again one for somebody new. Otherwise
    ``dry_at`` is when the last one goes. ``None`` of either: not within the horizon. ``a_day``: how many are handed out."""

    is_dry: bool
    a_day: float
    dry_at: datetime | None = None
    free_at: datetime | None = None


def forecast(supply: Supply, *, a_day: float | None, now: datetime) -> Forecast | None:
    """Tell it for as many hand-overs ``a_day`` as of late; ``None``, not known, without that pace."""
    if a_day is None:
        return None
    until, spare = now + HORIZON, supply.free - supply.waiting
    comes_back = sorted(max(at, now) for at in supply.comes_back if at <= until)
    if spare <= 0:
        return Forecast(is_dry=True, a_day=a_day, free_at=comes_back[-spare] if -spare < len(comes_back) else None)
    if not a_day:
        return Forecast(is_dry=False, a_day=a_day)
    each = timedelta(days=1) / a_day
    for returned in itertools.count():
        # So many last until then, and what comes back before that adds to them.
        dry_at = now + each * (spare + returned)
        if dry_at > until:
            return Forecast(is_dry=False, a_day=a_day)
        if returned == len(comes_back) or comes_back[returned] > dry_at:
            return Forecast(is_dry=False, a_day=a_day, dry_at=dry_at)
    raise AssertionError("the loop ends with the returns")


def pace(handed_out: Sequence[tuple[datetime, int]]) -> float | None:
    """How many are handed out a day, by how many were until each of some moments since the one before it, oldest first. ``None`` when they
    lie too close together to tell."""
    if not handed_out or (span := handed_out[-1][0] - handed_out[0][0]) < _SHORTEST_TO_TELL:
        return None
    return sum(count for _, count in handed_out[1:]) / (span / timedelta(days=1))
