"""What a subject holds already of just what is asked for: held without a gap, several requests are one holding."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from datetime import datetime, timedelta
from typing import Any

from accessportal.access_requests.kind import Resolved, kind_named
from accessportal.access_requests.states import AccessRequest, Status

_GAP = timedelta(minutes=5)


def held_of(kind: str, stored: Mapping[str, Any], open_now: Iterable[AccessRequest]) -> list[AccessRequest]:
    """Of what a subject has open, the active requests that give what ``stored`` asks for; those that are being taken back included."""
    gives = kind_named(kind).target.gives
    return [one for one in open_now if one.kind == kind and one.status is Status.ACTIVE and gives(one, stored)]


def with_held(resolved: Resolved, open_now: Iterable[AccessRequest], *, besides: str = "", now: datetime) -> Resolved:
    """``resolved``, asking for how long the subject, who has ``open_now``, has held it; ``besides`` one request, which does not count."""
    held = held_of(resolved.question.kind, resolved.stored, open_now)
    # What is being taken back leaves no gap to whoever asks anew at once; where that hangs for long, nobody can help it.
    going_on = [one for one in held if one.request_id != besides and now - one.expires_at < _GAP]
    since = min((one.holds_since for one in going_on), default=now)
    held_seconds = max(0, int((now - since).total_seconds()))
    return replace(resolved, question=replace(resolved.question, held_seconds=held_seconds))
