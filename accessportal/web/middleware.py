"""Kernel errors become pages here, and only here."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import structlog
from django.conf import settings
from django.core.exceptions import RequestDataTooBig
from django.core.files.uploadhandler import FileUploadHandler
from django.http import HttpRequest, HttpResponse, HttpResponseBase
from django.http.multipartparser import MultiPartParserError
from django.shortcuts import render
from django.urls import reverse

from accessportal.access_requests.states import AccessRequest
from accessportal.directory.states import Group, Membership
from accessportal.identity.database import AWAY
from accessportal.kernel.errors import Conflict, InvalidRequest, NotAllowed, NotFound, PortalError, Unavailable
from accessportal.tokens.states import ApiToken
from accessportal.web.errors import RETRY_AFTER_SECONDS, bad_request, database_away
from accessportal.web.exporting import EXPORTS_BUSY

log = structlog.get_logger(__name__)

# What people can make something of, and how its page is called.
_SHOWN = {
    "item_unreadable": "An item can’t be read",
    EXPORTS_BUSY: "Too much at once",
    "evidence_unavailable": "The store of the evidence does not answer",
    "evidence_missing": "A file of evidence is missing",
    "history_not_made": "The history is not ready",
    "history_outdated": "The history is outdated",
    "signing_unavailable": "The key of the evidence does not answer",
}


class BodyLimit:
    """413 for a body that is larger than any form or program needs, before a byte of it is read: Django's own limit counts only
    what it takes for text."""

    def __init__(self, get_response: Callable[[HttpRequest], HttpResponseBase]) -> None:
        self._get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponseBase:
        try:
            length = int(request.META.get("CONTENT_LENGTH") or 0)
        except ValueError:
            # Then Django reads nothing.
            length = 0
        if length > settings.DATA_UPLOAD_MAX_MEMORY_SIZE:
            return bad_request(request, RequestDataTooBig())
        return self._get_response(request)


class NoFiles(FileUploadHandler):
    """The portal takes none: Django would write each to the disk before a view is asked."""

    def new_file(self, *_: Any, **__: Any) -> None:
        raise MultiPartParserError("The portal takes no files.")


class ErrorMiddleware:
    """Answer 404, 403 with the reason, 409 with the present state, 400, 503 with a reference. A view with a form shows ``InvalidRequest``
    beside the field; what arrives here had no form."""

    def __init__(self, get_response: Callable[[HttpRequest], HttpResponseBase]) -> None:
        self._get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponseBase:
        return self._get_response(request)

    def process_exception(self, request: HttpRequest, exception: Exception) -> HttpResponse | None:
        if isinstance(exception, AWAY):
            return database_away(request, exception)
        return error_page(request, exception) if isinstance(exception, PortalError) else None


@dataclass(frozen=True, slots=True)
class _Way:
    label: str
    url: str


def _way_to(present: object) -> _Way | None:
    """Where to see how it stands, for what has a page beside requests."""
    match present:
        case Group():
            return _Way(f"See {present.name}", reverse("group", args=[present.group_id]))
        case Membership():
            return _Way(f"See {present.group_id}", reverse("group", args=[present.group_id]))
        case ApiToken():
            return _Way(f"See {present.name}", reverse("admin:console_tokens_detail", args=[present.token_id]))
        case _:
            return None


def error_page(request: HttpRequest, error: PortalError) -> HttpResponse:
    """The page for ``error``. Only ``Unavailable`` is our fault and logged with its trace."""
    match error:
        case NotFound():
            return render(request, "404.html", {"reason": error.message}, status=404)
        case NotAllowed():
            log.info("portal.not_allowed", code=error.code, path=request.path)
            return render(request, "403.html", {"reason": error.message}, status=403)
        case Conflict():
            present = error.present if isinstance(error.present, AccessRequest) else None
            context = {"reason": error.message, "present": present, "way": _way_to(error.present)}
            return render(request, "409.html", context, status=409)
        case InvalidRequest():
            return render(request, "invalid.html", {"reason": error.message}, status=400)
        case Unavailable():
            log.error("portal.unavailable", code=error.code, path=request.path, exc_info=error)
            shown = _SHOWN.get(error.code, "")
            told = {"reason": error.message if shown else "", "shown": shown, "is_read": bool(shown) and request.method == "GET"}
            response = render(request, "503.html", told, status=503)
            response.headers["Retry-After"] = str(RETRY_AFTER_SECONDS)
            return response
        case _:
            raise error
