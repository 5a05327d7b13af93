"""Durations as people write them, in whole seconds."""

from __future__ import annotations

import re

from accessportal.kernel.errors import InvalidRequest
from accessportal.kernel.texts import cut

_UNITS = {"d": 86_400, "h": 3_600, "m": 60, "s": 1}
_PLAIN = re.compile(r"(?:(\d{1,9})d)?(?:(\d{1,9})h)?(?:(\d{1,9})m)?(?:(\d{1,9})s)?", re.ASCII)
_ISO = re.compile(r"P(?:(\d{1,9})D)?(?:T(?:(\d{1,9})H)?(?:(\d{1,9})M)?(?:(\d{1,9})S)?)?", re.ASCII | re.IGNORECASE)
_LONGEST_TEXT = 100
_HINT = "write it like 30m, 8h, 2h30m, 2d or PT8H"
# Longer than anything the portal lends, and far from where moments end: a longer one could not even be added to now.
LONGEST_SECONDS = 3_650 * 86_400


def parse_duration(text: str, *, field: str = "duration") -> int:
    """Return the whole seconds, 1 to 3,650 days, of ``30m``, ``8h``, ``2h30m``, ``2d``, ``45s`` or ISO 8601 ``PT8H``, ``P1DT2H``. :raises
    InvalidRequest: naming ``field``, the rule and the remedy."""
    compact = "".join(text[: _LONGEST_TEXT + 1].split())
    if not compact:
        raise InvalidRequest(f"A duration is needed: {_HINT}.", code="duration_missing", field=field)
    if compact.startswith("-"):
        raise InvalidRequest("A duration can't be negative.", code="duration_not_positive", field=field)
    match = _PLAIN.fullmatch(compact.lower()) or _ISO.fullmatch(compact)
    if match is None or not any(match.groups()) or len(text) > _LONGEST_TEXT:
        raise InvalidRequest(f"“{cut(text)}” is not a duration: {_HINT}.", code="duration_unreadable", field=field)
    seconds = sum(int(part) * unit for part, unit in zip(match.groups(), _UNITS.values(), strict=True) if part)
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
