"""Durations as people write them, in whole seconds."""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta
from decimal import Decimal

from accessportal.kernel.errors import InvalidRequest
from accessportal.kernel.texts import cut

_UNITS = {"w": 604_800, "d": 86_400, "h": 3_600, "m": 60, "s": 1}
_NUMBER = r"(\d{1,9}(?:[.,]\d{1,4})?)"
# What follows hours or minutes without a unit is of the next smaller one: 1h30.
_WRITTEN = re.compile(
    rf"(?:{_NUMBER}w(?:eeks?)?)?(?:{_NUMBER}d(?:ays?)?)?(?:{_NUMBER}h(?:rs?|ours?)?)?(?:{_NUMBER}m(?:ins?|inutes?)?)?"
    rf"(?:{_NUMBER}s(?:ecs?|econds?)?)?",
    re.ASCII,
)
_HOURS_AND_MINUTES = re.compile(r".{0,40}\dh[0-5]\d", re.ASCII)
_ISO = re.compile(r"P(?:(\d{1,9})W)?(?:(\d{1,9})D)?(?:T(?:(\d{1,9})H)?(?:(\d{1,9})M)?(?:(\d{1,9})S)?)?", re.ASCII | re.IGNORECASE)
_UNTIL = re.compile(r"(?:until|till)(tomorrow)?(?:at)?(\d{1,2})(?:[:.](\d{2}))?(am|pm)?", re.ASCII)
_LONGEST_TEXT = 100
# Somebody types a time that is still to come, and sends it a while later.
_JUST_OVER = timedelta(hours=1)
_HINT = "write it like 30m, 8h, 2h30m, 2d or PT8H"
_HINT_FOR_PEOPLE = "write it like 90 (minutes), 1.5h, 2h30, 2d, 1w or “until 18:00”"
# Longer than anything the portal lends, and far from where moments end: a longer one could not even be added to now.
LONGEST_SECONDS = 3_650 * 86_400


def parse_duration(text: str, *, field: str = "duration", now: datetime | None = None) -> int:
    """Return the whole seconds, 1 to 3,650 days, of ``30m``, ``1.5h``, ``1h30``, ``2 hours``, ``1w`` or ISO 8601 ``PT8H``. With ``now``, of
    somebody who types in their zone, also of ``90`` (minutes) and ``until 18:00``. :raises InvalidRequest: naming ``field``, the rule and
    the remedy."""
    hint = _HINT if now is None else _HINT_FOR_PEOPLE
    compact = "".join(text[: _LONGEST_TEXT + 1].replace(" and ", " ").split())
    if not compact:
        raise InvalidRequest(f"A duration is needed: {hint}.", code="duration_missing", field=field)
    if compact.startswith("-"):
        raise InvalidRequest("A duration can't be negative.", code="duration_not_positive", field=field)
    seconds = None if len(text) > _LONGEST_TEXT else _seconds(compact.lower(), now, field)
    if seconds is None:
        raise InvalidRequest(f"“{cut(text)}” is not a duration: {hint}.", code="duration_unreadable", field=field)
    if seconds == 0:
        raise InvalidRequest("A duration must be longer than zero.", code="duration_not_positive", field=field)
    if seconds > LONGEST_SECONDS:
        text = f"A duration has at most {format_duration(LONGEST_SECONDS)}, and “{compact}” is more: write a shorter one."
        raise InvalidRequest(text, code="duration_too_long", field=field)
    return seconds


def format_duration(seconds: int) -> str:
    """The shortest exact words: ``8 h``, ``2 h 30 min``, ``1 d``, ``45 s``, ``0 s``."""
    parts = []
    rest = seconds
    for unit, word in ((86_400, "d"), (3_600, "h"), (60, "min"), (1, "s")):
        count, rest = divmod(rest, unit)
        if count:
            parts.append(f"{count} {word}")
    return " ".join(parts) or "0 s"


def _seconds(compact: str, now: datetime | None, field: str) -> int | None:
    if now is not None:
        if (until := _UNTIL.fullmatch(compact)) is not None:
            return _seconds_until(now, field, *until.groups())
        if compact.isascii() and compact.isdigit() and len(compact) <= 9:
            return int(compact) * 60
    written = f"{compact}m" if _HOURS_AND_MINUTES.fullmatch(compact) else compact
    match = _WRITTEN.fullmatch(written) or _ISO.fullmatch(compact)
    if match is None or not any(match.groups()):
        return None
    parts = zip(match.groups(), _UNITS.values(), strict=True)
    return int(sum(Decimal(part.replace(",", ".")) * unit for part, unit in parts if part))


def _seconds_until(now: datetime, field: str, tomorrow: str | None, hour: str, minute: str | None, half: str | None) -> int | None:
    """To the next time that the clock of ``now`` shows so; ``None`` for a time that no clock shows.

    :raises InvalidRequest: when that time is just over, and tomorrow's is hardly meant."""
    hours, minutes = int(hour), int(minute or 0)
    if half:
        if not 1 <= hours <= 12:
            return None
        hours = hours % 12 + (12 if half == "pm" else 0)
    if hours > 23 or minutes > 59:
        return None
    then = now.replace(hour=hours, minute=minutes, second=0, microsecond=0)
    if not tomorrow and timedelta(0) <= now - then < _JUST_OVER:
        text = f"{then:%H:%M} is just over: write a length, or “until tomorrow {then:%H:%M}”."
        raise InvalidRequest(text, code="duration_just_over", field=field)
    if tomorrow or then <= now:
        then += timedelta(days=1)
    # By way of UTC: two times of one zone are subtracted as if no clock were ever changed.
    return int((then.astimezone(UTC) - now.astimezone(UTC)).total_seconds())
