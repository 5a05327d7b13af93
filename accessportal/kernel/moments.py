"""Moments that were written down, perhaps by a clock that was wrong: none is believed further ahead of now than it may lie."""

from __future__ import annotations

from datetime import datetime, timedelta

# The clocks of two machines may differ by so much without either being wrong.
SKEW = timedelta(minutes=1)


def furthest(now: datetime, *, longest: timedelta) -> datetime:
    """The last moment that something put off for ``longest`` at most can lie at; later ones are a wrong clock's."""
    return now + longest + SKEW


def is_due(moment: datetime | None, *, now: datetime, longest: timedelta) -> bool:
    """Whether what waits until ``moment`` (``None``: for nothing) may go on; it is never put off for longer than ``longest``."""
    return moment is None or moment <= now or moment > furthest(now, longest=longest)


def is_recent(moment: datetime, *, now: datetime, within: timedelta) -> bool:
    """Whether ``moment`` has passed and less than ``within`` ago; what lies ahead of now did not happen lately."""
    return -SKEW <= now - moment < within
