"""What every page's frame needs."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import structlog
from django.conf import settings
from django.http import HttpRequest
from django.urls import reverse

from accessportal.kernel.clock import SystemClock
from accessportal.leases import operations as leases
from accessportal.upstream import client as upstream


@dataclass(frozen=True, slots=True)
class Place:
    label: str
    url: str
    is_current: bool


def frame(request: HttpRequest) -> dict[str, Any]:
    """Give each page its navigation, the actor, and the reference number of errors, at no query. The tally of approvals comes by htmx after
    the page."""
    actor = getattr(request, "actor", None)
    return {
        "actor": actor,
        "decides_here": request.path.startswith("/admin/") and actor is not None and not actor.reads_everything,
        "aws_start_url": settings.AWS_START_URL,
        "is_demo": settings.DEMO,
        "navigation": _navigation(request.path),
        "now": SystemClock().now(),
        "reference": reference(),
    }


def reference() -> str:
    """What an error page shows and every log line of the same request carries as ``request_id``."""
    return str(structlog.contextvars.get_contextvars().get("request_id", ""))[:36]


def _navigation(path: str) -> tuple[Place, ...]:
    home, new, groups = reverse("home"), reverse("new"), reverse("groups")
    places = (Place("My access", home, path == home), Place("Request", new, path.startswith(new)))
    # Without whoever cleans nothing would ever be free, so there is no pool.
    pools = (("Sandboxes", reverse("sandboxes"), upstream.is_set()), ("Accounts", reverse("accounts"), leases.is_cleaner_set()))
    found = (Place(label, url, path.startswith(url)) for label, url, is_set in pools if is_set or path.startswith(url))
    return (*places, Place("Groups", groups, path.startswith(groups)), *found)
