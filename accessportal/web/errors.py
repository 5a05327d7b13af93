"""Pages for what went wrong before or outside a view."""

from __future__ import annotations

import sys

import structlog
from django.core.exceptions import RequestDataTooBig, TooManyFieldsSent
from django.http import HttpRequest, HttpResponse
from django.http.multipartparser import MultiPartParserError
from django.shortcuts import redirect, render
from django.template import loader

from accessportal.identity import drafts
from accessportal.identity.database import AWAY, let_go
from accessportal.web.frame import reference

log = structlog.get_logger(__name__)

RETRY_AFTER_SECONDS = 5


def bad_request(request: HttpRequest, exception: Exception) -> HttpResponse:
    """Django refused to read the request. Its own words are for programmers, so only the cases that people meet are told."""
    too_big = isinstance(exception, RequestDataTooBig | TooManyFieldsSent)
    reason = "What was sent is larger than the portal takes. Go back, shorten the text and send it again." if too_big else ""
    if isinstance(exception, MultiPartParserError):
        reason = "The portal takes no files. Send the form as the page makes it."
    return render(request, "400.html", {"reason": reason, "title": "Too large" if too_big else ""}, status=413 if too_big else 400)


def csrf_failure(request: HttpRequest, reason: str = "") -> HttpResponse:
    """Answer a form that is not from this session: signed out meanwhile, or another site tried. A form of the person's own, from before
    they signed in again, comes back as it was typed; another site can't make one."""
    if request.method == "POST" and drafts.keep(request):
        return redirect(request.path)
    return render(request, "403_csrf.html", status=403)


def server_error(request: HttpRequest) -> HttpResponse:
    """A bug; or the database was away outside a view, where no middleware of ours sees it."""
    error = sys.exception()
    return database_away(request, error) if isinstance(error, AWAY) else HttpResponse(_without_request("500.html"), status=500)


def database_away(request: HttpRequest, error: Exception) -> HttpResponse:
    """503, before or after the work; whoever sends the same form again has it done once."""
    log.error("portal.database_away", path=request.path, exc_info=error)
    let_go()
    return HttpResponse(_without_request("503.html"), status=503, headers={"Retry-After": str(RETRY_AFTER_SECONDS)})


def _without_request(template: str) -> str:
    """The page uses nothing that may be broken: whose session it is would be asked of the database."""
    return loader.render_to_string(template, {"reference": reference()})
