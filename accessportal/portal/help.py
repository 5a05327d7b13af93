"""One page that explains the words of the portal."""

from __future__ import annotations

from django.conf import settings
from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.views.decorators.http import require_safe


@require_safe
def show(request: HttpRequest) -> HttpResponse:
    """The words, whom to ask, and the ways to the documentation."""
    return render(request, "portal/help.html", {"help_contact": settings.HELP_CONTACT, "docs_url": settings.DOCS_URL})
