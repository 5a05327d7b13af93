"""Small parts that the frame fetches after the page."""

from __future__ import annotations

from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.views.decorators.http import require_safe

from accessportal.identity.middleware import actor_of
from accessportal.portal.tally import tell


@require_safe
def approvals_tally(request: HttpRequest) -> HttpResponse:
    """How many requests wait for the actor, with the way to the queue; nothing for people who have no business there."""
    is_current = "/admin/" in request.headers.get("HX-Current-URL", "") and not actor_of(request).reads_everything
    return render(request, "portal/tally.html", {**tell(request, actor_of(request)), "is_current": is_current})
