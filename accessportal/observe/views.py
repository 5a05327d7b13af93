"""The page for scrapers: how is it doing."""

from __future__ import annotations

import hmac

from django.conf import settings
from django.contrib.auth.decorators import login_not_required
from django.http import HttpRequest, HttpResponse
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_safe
from prometheus_client import CONTENT_TYPE_LATEST, CollectorRegistry, generate_latest

from accessportal.kernel.clock import SystemClock
from accessportal.observe.metrics import PortalCollector


@login_not_required
@never_cache
@require_safe
def metrics(request: HttpRequest) -> HttpResponse:
    """Prometheus's text format, for whoever brings ``PORTAL_METRICS_TOKEN`` and for signed-in operators and auditors."""
    if not (_brings_token(request) or request.user.has_perm("observe.view_heartbeat")):
        return HttpResponse(
            "Metrics are for operators, auditors, and programs with the bearer token of PORTAL_METRICS_TOKEN.\n",
            status=403,
            content_type="text/plain; charset=utf-8",
        )
    registry = CollectorRegistry(auto_describe=False)
    registry.register(PortalCollector(now=SystemClock().now()))
    return HttpResponse(generate_latest(registry), content_type=CONTENT_TYPE_LATEST)


def _brings_token(request: HttpRequest) -> bool:
    wanted = settings.METRICS_TOKEN
    brought = request.headers.get("Authorization", "")
    return bool(wanted) and hmac.compare_digest(brought.encode(), f"Bearer {wanted}".encode())
