"""What is no operation: the document, its page, and every address that does not exist."""

from __future__ import annotations

import functools
import json

from csp.constants import NONE, SELF
from csp.decorators import csp_replace
from django.contrib.auth.decorators import login_not_required
from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.views.decorators.csrf import csrf_exempt
from django.views.decorators.http import require_GET

from accessportal.api import errors
from accessportal.api.documenting import document
from accessportal.api.service import api

# Swagger UI draws its icons from data: addresses. It sends what is tried out to this server alone.
_POLICY = {
    "default-src": [NONE],
    "script-src": [SELF],
    "style-src": [SELF],
    "img-src": [SELF, "data:"],
    "connect-src": [SELF],
    "form-action": [NONE],
    "frame-ancestors": [NONE],
    "base-uri": [NONE],
}


@login_not_required
@csrf_exempt
@require_GET
def openapi(_request: HttpRequest) -> HttpResponse:
    """The OpenAPI document. It tells nothing that the source does not, so nobody needs a token for it."""
    return HttpResponse(_document(), content_type="application/json")


@functools.cache
def _document() -> bytes:
    return json.dumps(document(api)).encode()


@login_not_required
@csrf_exempt
@require_GET
@csp_replace(_POLICY)
def docs(request: HttpRequest) -> HttpResponse:
    """The document as a page to read and to try out, from static files of our own."""
    return render(request, "api/docs.html")


@login_not_required
@csrf_exempt
def unknown(request: HttpRequest) -> HttpResponse:
    """No such address, whatever the method."""
    return errors.ErrorResponse(request, errors.of_status(404))
