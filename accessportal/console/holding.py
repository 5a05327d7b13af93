"""Who holds something now, and what was asked for last: a part of the pages of accounts and rules."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from datetime import timedelta
from typing import Any

from accessportal.access_requests import queries
from accessportal.access_requests.states import AccessRequest, Search, Status
from accessportal.console.resource import Ask
from accessportal.web.narrowing import LATELY_DAYS

_LATEST = 10


@dataclass(frozen=True, slots=True)
class Asked:
    request: AccessRequest
    title: str
    subject_name: str


def held_and_asked(search: Search, ask: Ask) -> dict[str, Any]:
    """``held``: what is active, and ``latest``: what was asked for last; each tells whether there may be more."""
    held = queries.search(search=replace(search, status=Status.ACTIVE), actor=ask.actor, now=ask.now)
    latest = queries.search(search=search, actor=ask.actor, now=ask.now, limit=_LATEST)
    return {
        "held": _told(held.items),
        "is_more_held": held.next_cursor is not None,
        "latest": _told(latest.items),
        "lately_days": LATELY_DAYS,
        "lately": (ask.now - timedelta(days=LATELY_DAYS)).date(),
        "unreadable": (*held.unreadable, *latest.unreadable),
    }


def _told(requests: Iterable[AccessRequest]) -> list[Asked]:
    return [Asked(one, queries.title_of(request=one), queries.describe(request=one).subject_name or one.subject_id) for one in requests]
