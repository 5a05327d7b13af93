"""Sandboxes: mine, and the pool at a glance."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any, cast

from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.views.decorators.http import require_safe

from accessportal.access_requests import queries
from accessportal.access_requests.kinds.sandbox.target import chain_of
from accessportal.identity.middleware import PortalRequest, actor_of, book_of
from accessportal.kernel.clock import from_epoch, to_epoch
from accessportal.kernel.moments import is_recent
from accessportal.kernel.pages import Unreadable
from accessportal.portal import live
from accessportal.portal.requests.lent import held_by, mark_of_all
from accessportal.portal.requests.rows import Row, open_list
from accessportal.sandboxes import queries as sandboxes
from accessportal.sandboxes.states import Stats
from accessportal.sandboxes.states import Status as PoolStatus
from accessportal.upstream import client as upstream
from accessportal.web.pool_chart import RANGES, WORDS, Range, draw

_USUAL_RANGE = "24h"
# The drawing moves on in steps, so that it stays the same for as long as nothing was counted.
_STEP_SECONDS = 300
_OLD_SECONDS = 1200
_HELP = {
    PoolStatus.AVAILABLE: "to be had",
    PoolStatus.ALLOCATED: "in use",
    PoolStatus.PENDING_DELETION: "back soon",
    PoolStatus.STALE: "missing",
    PoolStatus.QUARANTINED: "out of use",
}


@dataclass(frozen=True, slots=True)
class Tile:
    """How many are in one status, and what that means."""

    word: str
    count: int
    help: str


@require_safe
def index(request: HttpRequest) -> HttpResponse:
    """The page; for htmx only the part that was asked for: mine, or the pool."""
    actor, book = actor_of(request), book_of(request)
    now = book.now
    part = request.GET.get("part", "") if cast(PortalRequest, request).htmx else ""
    if part == "pool":
        return live.answer(request, "portal/sandboxes_pool_live.html", _pool(request, now))
    unreadable: list[Unreadable] = []
    current = [one for one in queries.list_open(subject_id=actor.name, past=unreadable.append) if one.kind == "sandbox"]
    held = held_by(current)
    mark = mark_of_all(current, held, now)
    if part == "mine" and request.GET.get("mark") == mark:
        return HttpResponse(status=204)
    mine = open_list(current, held, actor, book)
    mine |= {"mine_mark": mark, "lent": _one_a_sandbox(mine["active"])}
    if part == "mine":
        return render(request, "portal/sandboxes_mine.html", mine)
    return render(request, "portal/sandboxes.html", mine | _pool(request, now) | {"unreadable": unreadable})


def _one_a_sandbox(rows: list[Row]) -> list[Row]:
    """Keep of the requests that hold the same sandbox the one that ends last; those that hold none yet stand for themselves. ``rows`` stay
    in the order of their ends."""
    last = {chain_of(row.request): row.request.request_id for row in rows if row.request.is_granted}
    return [row for row in rows if not row.request.is_granted or last[chain_of(row.request)] == row.request.request_id]


def _pool(request: HttpRequest, now: datetime) -> dict[str, Any]:
    """How the pool stands, and how it came to that in the time that was chosen (``range``)."""
    spans = RANGES.get(request.GET.get("range", ""), RANGES[_USUAL_RANGE])
    stats = sandboxes.stats()
    free = stats.counts.get(PoolStatus.AVAILABLE, 0) if stats is not None else 0
    until = from_epoch(-(-to_epoch(now) // _STEP_SECONDS) * _STEP_SECONDS)
    context = {
        "stats": stats,
        "free": free,
        "tiles": [Tile(word, stats.counts.get(status, 0), _HELP[status]) for status, word in WORDS.items()] if stats is not None else [],
        "is_old": stats is not None and not is_recent(stats.counted_at, now=now, within=timedelta(seconds=_OLD_SECONDS)),
        "next_return_at": sandboxes.next_return_at(now=now) if stats is not None and not free else None,
        "has_provider": upstream.is_set(),
        "chart": draw(_counts(spans, stats, until), spans=spans, until=until),
        "words": WORDS.values(),
        "ranges": RANGES.values(),
        "chosen": spans,
        "now": now,
    }
    return live.rendered(request, "portal/sandboxes_pool.html", context)


def _counts(spans: Range, stats: Stats | None, until: datetime) -> list[Stats]:
    """Those that are kept, and the last one, which may have come too soon after another to be kept."""
    kept = sandboxes.counts_between(since=until - spans.length, until=until)
    return [*kept, stats] if stats is not None and stats not in kept[-1:] else list(kept)
