"""What lists of requests are narrowed by, as their forms send it: a state, and days."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, date, datetime, time, timedelta, tzinfo

from accessportal.access_requests.states import Search, Status
from accessportal.kernel.errors import InvalidRequest

LATELY_DAYS = 30
STATES = {
    Status.PENDING: "Waiting for approval",
    Status.ACTIVE: "Active",
    Status.REVOKED: "Ended",
    Status.DENIED: "Denied",
    Status.CANCELLED: "Cancelled",
    Status.LAPSED: "Lapsed",
}


def narrowed(given: Mapping[str, str], *, zone: tzinfo = UTC) -> Search:
    """The ``state`` and the days ``since`` and ``until``, both included, of ``zone``. :raises InvalidRequest: naming what can't be read."""
    since, until = (read_day(given[name], field=name) if given[name] else None for name in ("since", "until"))
    if since and until and until < since:
        # A table refuses such a range, which would look as if it were out of reach.
        raise InvalidRequest("The last day is before the first day. Give a later one.", code="days_reversed", field="until")
    return Search(
        status=_status(given["state"]),
        since=_begin(since, zone) if since else None,
        until=_begin(until + timedelta(days=1), zone) if until and until < date.max else None,
    )


def read_day(text: str, *, field: str) -> date:
    """:raises InvalidRequest: when ``text`` is not a day."""
    try:
        return date.fromisoformat(text)
    except ValueError as error:
        raise InvalidRequest(f"“{text[:40]}” is not a day: write it like 2026-03-02.", code="day_unreadable", field=field) from error


def _status(text: str) -> Status | None:
    try:
        return Status(text) if text else None
    except ValueError as error:
        raise InvalidRequest("That is no state of a request. Choose one of the list.", code="state_unknown", field="state") from error


def _begin(day: date, zone: tzinfo) -> datetime:
    return datetime.combine(day, time(), tzinfo=zone)
