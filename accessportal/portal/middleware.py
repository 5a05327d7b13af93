"""Kernel errors become pages here, and only here."""

from __future__ import annotations

from collections.abc import Callable

import structlog
from django.http import HttpRequest, HttpResponse, HttpResponseBase
from django.shortcuts import render

from accessportal.access_requests.states import AccessRequest
from accessportal.kernel.errors import Conflict, InvalidRequest, NotAllowed, NotFound, PortalError, Unavailable

log = structlog.get_logger(__name__)

_RETRY_AFTER_SECONDS = 5


class ErrorMiddleware:
    """404, 403 with the reason, 409 with the present state, 400, 503 with a reference: for the portal and the admin pages.

    A view with a form catches ``InvalidRequest`` itself and shows it beside the field; what arrives here had no form.
    """

    def __init__(self, get_response: Callable[[HttpRequest], HttpResponseBase]) -> None:
        self._get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponseBase:
        return self._get_response(request)

    def process_exception(self, request: HttpRequest, exception: Exception) -> HttpResponse | None:
        return error_page(request, exception) if isinstance(exception, PortalError) else None


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
            return render(request, "409.html", {"reason": error.message, "present": present}, status=409)
        case InvalidRequest():
            return render(request, "400.html", {"reason": error.message}, status=400)
        case Unavailable():
            log.error("portal.unavailable", code=error.code, path=request.path, exc_info=error)
            response = render(request, "503.html", status=503)
            response.headers["Retry-After"] = str(_RETRY_AFTER_SECONDS)
            return response
        case _:
            raise error
