"""Moments in addresses: written in UTC, typed in the zone of whoever looks."""

from __future__ import annotations

from datetime import UTC, datetime

from accessportal.kernel.clock import zone_named
from accessportal.kernel.errors import InvalidRequest

_LONGEST = 40


def to_text(moment: datetime) -> str:
    """``2026-03-02T08:15:00Z``."""
    return f"{moment.astimezone(UTC):%Y-%m-%dT%H:%M:%SZ}"


def in_utc(text: str, *, zone: str) -> str:
    """What was typed in ``zone``, as :func:`to_text` writes it; what is no moment stays as it is, for whoever reads it to refuse."""
    try:
        typed = datetime.fromisoformat(text[:_LONGEST])
        return to_text(typed if typed.tzinfo else typed.replace(tzinfo=zone_named(zone)))
    except (ValueError, OverflowError):
        return text


def read_moment(text: str, *, field: str) -> datetime:
    """:raises InvalidRequest: for what :func:`to_text` has not written."""
    try:
        moment = datetime.fromisoformat(text[:_LONGEST])
    except ValueError:
        moment = None
    if moment is None or moment.tzinfo is None:
        words = f"“{text[:_LONGEST]}” is no moment: give one like 2026-03-02T08:15:00Z."
        raise InvalidRequest(words, code="moment_unreadable", field=field)
    return moment
