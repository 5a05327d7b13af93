"""Sandboxes: mine, and the pool at a glance."""

from __future__ import annotations

from datetime import datetime
from typing import Any

from accessportal.portal.pools import Pool
from accessportal.sandboxes import queries as sandboxes
from accessportal.sandboxes.states import Status
from accessportal.upstream import client as upstream
from accessportal.web.pool_chart import Counted


def _told(last: Counted | None, now: datetime) -> dict[str, Any]:
    return {
        "has_provider": upstream.is_set(),
        "next_return_at": sandboxes.next_return_at(now=now) if last is not None and not last.free else None,
    }


POOL = Pool(
    kind="sandbox",
    route="sandboxes",
    title="Sandboxes",
    about="Out of a pool, for a while. What is given back is cleaned before anybody else gets it.",
    thing="a sandbox",
    states={
        Status.AVAILABLE: ("free", "to be had"),
        Status.ALLOCATED: ("lent", "in use"),
        Status.PENDING_DELETION: ("cleaning", "back soon"),
        Status.STALE: ("stale", "missing"),
        Status.QUARANTINED: ("quarantined", "out of use"),
    },
    notice="portal/pools/sandboxes.html",
    last=sandboxes.stats,
    between=sandboxes.counts_between,
    told=_told,
)
