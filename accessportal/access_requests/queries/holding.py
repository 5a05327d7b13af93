"""What a subject holds already of just what is asked for: held without a gap, several requests are one holding."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from datetime import datetime, timedelta
from typing import Any

from accessportal.access_requests.kind import Resolved, kind_named
from accessportal.access_requests.queries.lists import list_open
from accessportal.access_requests.states import AccessRequest, Status

_GAP = timedelta(minutes=5)


def held_of(kind: str, stored: Mapping[str, Any], subject_id: str) -> list[AccessRequest]:
    """The subject's active requests that give what ``stored`` asks for, those that are being taken back included."""
    gives = kind_named(kind).target.gives
    return [
        request
        for request in list_open(subject_id=subject_id)
        if request.kind == kind and request.status is Status.ACTIVE and gives(request, stored)
    ]


def with_held(resolved: Resolved, subject_id: str, *, besides: str = "", now: datetime) -> Resolved:
    """``resolved``, asking for how long the subject has held it until now; ``besides`` one request, which does not count."""
    held = held_of(resolved.question.kind, resolved.stored, subject_id)
    # What is being taken back leaves no gap to whoever asks anew at once; where that hangs for long, nobody can help it.
    going_on = [one for one in held if one.request_id != besides and now - one.expires_at < _GAP]
    since = min((one.holds_since for one in going_on), default=now)
    held_seconds = max(0, int((now - since).total_seconds()))
    return replace(resolved, question=replace(resolved.question, held_seconds=held_seconds))
