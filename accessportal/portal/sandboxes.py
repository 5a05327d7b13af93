"""Sandboxes: mine, and the pool at a glance."""

from __future__ import annotations

from datetime import datetime
from typing import Any

from django.http import HttpRequest, HttpResponse
from django.views.decorators.http import require_safe

from accessportal.portal.pools import Pool, show
from accessportal.sandboxes import queries as sandboxes
from accessportal.sandboxes.states import Status
from accessportal.upstream import client as upstream
from accessportal.web.pool_chart import Counted

_STATES = {
    Status.AVAILABLE: ("free", "to be had"),
    Status.ALLOCATED: ("lent", "in use"),
    Status.PENDING_DELETION: ("cleaning", "back soon"),
    Status.STALE: ("stale", "missing"),
    Status.QUARANTINED: ("quarantined", "out of use"),
}


def _told(last: Counted | None, now: datetime) -> dict[str, Any]:
    return {
        "has_provider": upstream.is_set(),
        "next_return_at": sandboxes.next_return_at(now=now) if last is not None and not last.free else None,
    }


_POOL = Pool(
    kind="sandbox",
    route="sandboxes",
    title="Sandboxes",
    about="Out of a pool, for a while. What is given back is cleaned before anybody else gets it.",
    thing="a sandbox",
    states=_STATES,
    notice="portal/pools/sandboxes.html",
    last=sandboxes.stats,
    between=sandboxes.counts_between,
    told=_told,
)


@require_safe
def index(request: HttpRequest) -> HttpResponse:
    return show(request, _POOL)
