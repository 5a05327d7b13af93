"""The clock. Read at the edge and passed in; no domain function asks the machine for the time."""

from __future__ import annotations

import time
from datetime import UTC, datetime, tzinfo
from typing import Annotated, Protocol
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError


class Clock(Protocol):
    """What a long-running piece of work needs of time: to read it and to wait. Tests pass one that jumps."""

    def now(self) -> datetime:
        """The present moment, aware, in UTC."""
        ...

    def sleep(self, seconds: float) -> None:
        """Return after at least this many seconds."""
        ...


class SystemClock:
    """The machine's clock."""

    def now(self) -> datetime:
        return datetime.now(UTC)

    def sleep(self, seconds: float) -> None:
        if seconds > 0:
            time.sleep(seconds)


Precise = Annotated[datetime, "milliseconds"]
"""A moment that is stored with its milliseconds; the others are stored in whole seconds."""
_LONGEST_ZONE = 64
_LAST_EPOCH = datetime(9000, 1, 1, tzinfo=UTC).timestamp()


def whole_second(moment: datetime) -> datetime:
    """Rounded down to what :func:`to_epoch` keeps of it."""
    return moment.replace(microsecond=0)


def to_epoch(moment: datetime) -> int:
    """Whole epoch seconds (the seed's type for times), rounded down."""
    return int(moment.timestamp())


def epoch_of(moment: datetime | None) -> int | None:
    """As :func:`to_epoch`, where there is a moment."""
    return None if moment is None else to_epoch(moment)


def precise(moment: datetime) -> float:
    """Epoch seconds with milliseconds, rounded down: what is due now must not be stored as due in a moment."""
    return moment.replace(microsecond=moment.microsecond // 1000 * 1000).timestamp()


def from_epoch(seconds: float) -> datetime:
    """Return the aware UTC moment of epoch ``seconds``. :raises ValueError: before 1970 or after the year 9000, which nobody could show or
    reckon with."""
    if not 0 <= seconds <= _LAST_EPOCH:
        raise ValueError(f"{seconds} is no moment in epoch seconds")
    return datetime.fromtimestamp(seconds, UTC)


def zone_named(name: str) -> tzinfo:
    """The time zone of this name, like ``Europe/Berlin``; UTC for one that nobody knows, or for none."""
    try:
        return ZoneInfo(name) if 0 < len(name) <= _LONGEST_ZONE else UTC
    except (ZoneInfoNotFoundError, ValueError, OSError):
        return UTC
