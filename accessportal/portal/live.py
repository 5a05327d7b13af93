"""The part of a page that refreshes itself while something is under way."""

from __future__ import annotations

import hashlib
from typing import Any

from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.template.loader import render_to_string


def rendered(request: HttpRequest, template: str, context: dict[str, Any]) -> dict[str, Any]:
    """The live part and its mark. The mark is over all that it shows, so that nothing can be forgotten in it."""
    body = render_to_string(template, context, request=request)
    return context | {"body": body, "mark": hashlib.sha256(body.encode()).hexdigest()[:16]}


def answer(request: HttpRequest, template: str, context: dict[str, Any]) -> HttpResponse:
    """204 while the page that asks (``mark``) still shows how it stands."""
    if request.GET.get("mark") == context["mark"]:
        return HttpResponse(status=204)
    return render(request, template, context)
