"""Pages for what went wrong before or outside a view."""

from __future__ import annotations

from django.core.exceptions import RequestDataTooBig, TooManyFieldsSent
from django.http import HttpRequest, HttpResponse
from django.http.multipartparser import MultiPartParserError
from django.shortcuts import redirect, render

from accessportal.identity import drafts
from accessportal.portal.context import reference


def bad_request(request: HttpRequest, exception: Exception) -> HttpResponse:
    """Django refused to read the request. Its own words are for programmers, so only the cases that people meet are told."""
    too_big = isinstance(exception, RequestDataTooBig | TooManyFieldsSent)
    reason = "What was sent is larger than the portal takes. Go back, shorten the text and send it again." if too_big else ""
    if isinstance(exception, MultiPartParserError):
        reason = "The portal takes no files. Send the form as the page makes it."
    return render(request, "400.html", {"reason": reason, "title": "Too large" if too_big else ""}, status=413 if too_big else 400)


def csrf_failure(request: HttpRequest, reason: str = "") -> HttpResponse:
    """The form was not from this session: signed out meanwhile, or another site tried. ``reason`` is for the log, which has it.

    A form of the person's own, from before they signed in again, comes back as it was typed; another site can't make one.
    """
    if request.method == "POST" and drafts.keep(request):
        return redirect(request.path)
    return render(request, "403_csrf.html", status=403)


def server_error(request: HttpRequest) -> HttpResponse:
    """A bug. The page uses nothing that may be broken."""
    return HttpResponse(_plain_500(), status=500)


def _plain_500() -> str:
    from django.template import loader

    return loader.render_to_string("500.html", {"reference": reference()})
