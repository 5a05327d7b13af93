"""Small parts that the frame fetches after the page."""

from __future__ import annotations

from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.views.decorators.http import require_safe

from accessportal.access_requests import queries
from accessportal.identity.middleware import actor_of
from accessportal.kernel.clock import SystemClock

_UP_TO = 25


@require_safe
def approvals_tally(request: HttpRequest) -> HttpResponse:
    """How many requests wait for the actor, with the way to the queue; nothing for people who have no business there."""
    actor, now = actor_of(request), SystemClock().now()
    decides = actor.is_operator or queries.is_approver_anywhere(actor=actor, now=now)
    count = queries.count_waiting_for(actor=actor, now=now, up_to=_UP_TO) if decides else 0
    return render(request, "portal/tally.html", {"decides": decides, "count": count, "is_more": count >= _UP_TO})
