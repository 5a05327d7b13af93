"""The edges of the API: a request's number in and out, no cookies, and the one shape for what was refused outside our code."""

from __future__ import annotations

import json
import re
import uuid
from collections.abc import Callable
from typing import Any

import structlog
from django.dispatch import receiver
from django.http import HttpRequest, HttpResponse
from django_structlog.signals import bind_extra_request_metadata

from accessportal.api.errors import ErrorResponse, of_status

PREFIX = "/v1/"
# What goes into logs and answers is what a client may choose: short, and nothing that a terminal or a page could act on.
_REQUEST_ID = re.compile(r"[A-Za-z0-9._-]{1,128}")


class ApiMiddleware:
    """The first of all, so that everything that is answered under ``/v1/`` passes here, and the logs know the number too."""

    def __init__(self, get_response: Callable[[HttpRequest], HttpResponse]) -> None:
        self._get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponse:
        if not request.path_info.startswith(PREFIX):
            return self._get_response(request)
        request_id = request.META["HTTP_X_REQUEST_ID"] = _number(request)
        # A browser's session counts for nothing here. Without the cookie no part of Django looks for one, nor into its database.
        request.META.pop("HTTP_COOKIE", None)
        response = self._get_response(request)
        if response.status_code >= 400 and not isinstance(response, ErrorResponse):
            _tell_in_our_shape(request, response)
        response.headers["X-Request-ID"] = request_id
        response.headers["Cache-Control"] = "no-store"
        del response.headers["Vary"]
        return response


@receiver(bind_extra_request_metadata, dispatch_uid="accessportal.api.middleware")
def _tell_the_logs(request: HttpRequest, **_: Any) -> None:
    """The logs' own number would be a second one."""
    if request.path_info.startswith(PREFIX):
        structlog.contextvars.bind_contextvars(request_id=request.META["HTTP_X_REQUEST_ID"])


def _number(request: HttpRequest) -> str:
    given = request.META.get("HTTP_X_REQUEST_ID", "")
    return given if _REQUEST_ID.fullmatch(given) else str(uuid.uuid4())


def _tell_in_our_shape(request: HttpRequest, response: HttpResponse) -> None:
    """Django's page of an error gives way to ours; its headers (Allow, the security headers) stay."""
    answer = of_status(response.status_code)
    response.content = json.dumps(answer.body(request)).encode()
    response.headers["Content-Type"] = "application/json"
    # Django's was counted for the text that has given way, and servers cut the answer to it.
    response.headers["Content-Length"] = str(len(response.content))
    if answer.retry_after is not None:
        response.headers["Retry-After"] = str(answer.retry_after)
