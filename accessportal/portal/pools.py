"""The page of a pool: what I have of it, and the pool at a glance."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any, Protocol, cast

from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.urls import reverse
from django.views.decorators.http import require_safe

from accessportal.access_requests import queries
from accessportal.access_requests.kind import kind_named
from accessportal.identity.middleware import PortalRequest, actor_of, book_of
from accessportal.kernel.clock import from_epoch, to_epoch
from accessportal.kernel.moments import is_recent
from accessportal.kernel.pages import Unreadable
from accessportal.portal import live
from accessportal.portal.requests.lent import lent_to_all, mark_of_all
from accessportal.portal.requests.rows import Row, open_list
from accessportal.web.pool_chart import RANGES, Counted, Range, draw

_USUAL_RANGE = "24h"
# The drawing moves on in steps, so that it stays the same for as long as nothing was counted.
_STEP_SECONDS = 300
_OLD_SECONDS = 1200


class Kept(Protocol):
    """A count, as the room of the pool keeps it."""

    @property
    def counted_at(self) -> datetime: ...

    @property
    def counts(self) -> Mapping[Any, int]: ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Pool:
    """What is lent on requests of one ``kind``. ``states``: what each is called and what that means, from the bottom of the drawing to its
    top. ``notice`` is a template for what is to be known beforehand; ``told`` gathers that, given the last count."""

    kind: str
    route: str
    title: str
    about: str
    thing: str
    states: Mapping[Any, tuple[str, str]]
    notice: str
    last: Callable[[], Kept | None]
    between: Callable[..., Sequence[Kept]]
    told: Callable[[Counted | None, datetime], dict[str, Any]]

    @property
    def url(self) -> str:
        return reverse(self.route)

    @property
    def words(self) -> list[str]:
        return [word for word, _ in self.states.values()]

    def counted(self, kept: Kept) -> Counted:
        return Counted(kept.counted_at, tuple(kept.counts.get(state, 0) for state in self.states))


@dataclass(frozen=True, slots=True)
class Tile:
    """How many are in one state, and what that means."""

    word: str
    count: int
    help: str


@require_safe
def show(request: HttpRequest, pool: Pool) -> HttpResponse:
    """The page; for htmx only the part that was asked for: mine, or the pool."""
    actor, book = actor_of(request), book_of(request)
    now = book.now
    part = request.GET.get("part", "") if cast(PortalRequest, request).htmx else ""
    if part == "pool":
        return live.answer(request, "portal/pool_glance_live.html", _glance(request, pool, now))
    unreadable: list[Unreadable] = []
    current = [one for one in queries.list_open(subject_id=actor.name, past=unreadable.append) if one.kind == pool.kind]
    lent = lent_to_all(current, now)
    mark = mark_of_all(current, lent, now)
    if part == "mine" and request.GET.get("mark") == mark:
        return HttpResponse(status=204)
    mine = open_list(current, lent, actor, book)
    mine |= {"pool": pool, "mine_mark": mark, "lent": _one_a_thing(mine["active"])}
    if part == "mine":
        return render(request, "portal/pool_mine.html", mine)
    return render(request, "portal/pool.html", mine | _glance(request, pool, now) | {"unreadable": unreadable})


def _one_a_thing(rows: list[Row]) -> list[Row]:
    """Keep of the requests that hold the same thing the one that ends last; those that hold none yet stand for themselves. ``rows`` stay
    in the order of their ends."""
    holds = {row.request.request_id: kind_named(row.request.kind).target.holding(row.request) for row in rows if row.request.is_granted}
    last = {thing: request_id for request_id, thing in holds.items()}
    return [row for row in rows if not row.request.is_granted or last[holds[row.request.request_id]] == row.request.request_id]


def _glance(request: HttpRequest, pool: Pool, now: datetime) -> dict[str, Any]:
    """How the pool stands, and how it came to that in the time that was chosen (``range``)."""
    spans = RANGES.get(request.GET.get("range", ""), RANGES[_USUAL_RANGE])
    kept = pool.last()
    last = pool.counted(kept) if kept is not None else None
    until = from_epoch(-(-to_epoch(now) // _STEP_SECONDS) * _STEP_SECONDS)
    context = {
        "pool": pool,
        "last": last,
        "tiles": [Tile(word, count, means) for (word, means), count in zip(pool.states.values(), last.counts, strict=True)] if last else [],
        "is_old": last is not None and not is_recent(last.counted_at, now=now, within=timedelta(seconds=_OLD_SECONDS)),
        "chart": draw(_counts(pool, spans, last, until), words=pool.words, spans=spans, until=until),
        "ranges": RANGES.values(),
        "chosen": spans,
        "now": now,
        **pool.told(last, now),
    }
    return live.rendered(request, "portal/pool_glance.html", context)


def _counts(pool: Pool, spans: Range, last: Counted | None, until: datetime) -> list[Counted]:
    """Those that are kept, and the last one, which may have come too soon after another to be kept."""
    kept = [pool.counted(one) for one in pool.between(since=until - spans.length, until=until)]
    return [*kept, last] if last is not None and last not in kept[-1:] else kept
