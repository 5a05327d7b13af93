"""How many requests wait for somebody, as the bar of every page says it."""

from __future__ import annotations

from typing import Any

import structlog
from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.views.decorators.http import require_safe

from accessportal.access_requests import queries
from accessportal.identity.middleware import actor_of, book_of
from accessportal.kernel.actors import Actor
from accessportal.kernel.counts import Count
from accessportal.kernel.errors import PortalError

log = structlog.get_logger(__name__)

_UP_TO = 25
_TOLD = "approvals"


def tell(request: HttpRequest, actor: Actor) -> dict[str, Any]:
    """Counted now, and remembered for the next page."""
    book = book_of(request)
    decides = actor.is_operator or book.decides(actor)
    count = queries.count_waiting_for(actor=actor, now=book.now, up_to=_UP_TO, book=book) if decides else Count(0)
    told = {"decides": decides, "count": count.words, "is_unseen": count.is_more and not count.seen}
    if request.session.get(_TOLD) != told:
        request.session[_TOLD] = told
    return told


def last_told(request: HttpRequest, actor: Actor) -> dict[str, Any]:
    """As it was told last, so that no entry of the bar moves when the page has asked anew; counted once a session."""
    known: dict[str, Any] | None = request.session.get(_TOLD)
    if known is not None:
        return known
    try:
        return tell(request, actor)
    except PortalError as error:
        # The page itself may do without; it asks again by itself.
        log.warning("portal.tally_unknown", code=error.code)
        return {}


@require_safe
def show(request: HttpRequest) -> HttpResponse:
    """The part of the bar with the way to the queue, fetched after the page; nothing for people who have no business there."""
    actor = actor_of(request)
    is_current = "/admin/" in request.headers.get("HX-Current-URL", "") and not actor.reads_everything
    return render(request, "web/tally.html", {**tell(request, actor), "is_current": is_current})
