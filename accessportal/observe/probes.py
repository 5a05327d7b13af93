"""Three addresses for machines, with one meaning each. Each says a word and no more: anybody may ask."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from django.http import HttpRequest, HttpResponse, HttpResponseBase, JsonResponse
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_safe

from accessportal.observe import health


@never_cache
@require_safe
def healthz(_request: HttpRequest) -> HttpResponse:
    """200 while the process answers at all. Looks at nothing else, so that a restart is never asked for in vain."""
    return JsonResponse({"status": "alive"})


@never_cache
@require_safe
def readyz(_request: HttpRequest) -> HttpResponse:
    """200 when everything that a page needs answers, else 503."""
    return _told(health.PAGES.found(), "ready")


@never_cache
@require_safe
def workz(_request: HttpRequest) -> HttpResponse:
    """200 when jobs are done of late, else 503. For alarms: a web server is no worse for it."""
    return _told(health.WORK.found(), "working")


def _told(found: health.Health, word: str) -> HttpResponse:
    if found.is_well:
        return JsonResponse({"status": word})
    response = JsonResponse({"status": f"not {word}"}, status=503)
    # Django would log each as an error, every few seconds for each balancer; that it changed is in the log.
    response._has_been_logged = True  # type: ignore[attr-defined]  # Django's own mark
    return response


PROBES: Mapping[str, Callable[[HttpRequest], HttpResponse]] = {"/healthz": healthz, "/readyz": readyz, "/workz": workz}


class Probes:
    """Answers them before anything judges the request: load balancers ask over HTTP, with a target's address as ``Host``."""

    def __init__(self, get_response: Callable[[HttpRequest], HttpResponseBase]) -> None:
        self._get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponseBase:
        probe = PROBES.get(request.path_info)
        return self._get_response(request) if probe is None else probe(request)
