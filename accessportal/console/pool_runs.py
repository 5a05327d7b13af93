"""Ordering a run of the pool: a page that says what will happen, and its one button."""

from __future__ import annotations

from django.contrib import messages
from django.http import HttpRequest, HttpResponse, HttpResponseRedirect
from django.views.decorators.http import require_http_methods

from accessportal.console.resources import RESOURCES
from accessportal.console.views import list_url, render_page
from accessportal.identity.middleware import actor_of
from accessportal.kernel.clock import SystemClock
from accessportal.kernel.errors import NotFound
from accessportal.sandboxes import operations, queries
from accessportal.sandboxes.states import RunKind
from accessportal.upstream import client as upstream

_TITLES = {RunKind.SYNC: "Look at the provider’s list", RunKind.CLEANUP: "Expire and clean now"}
_WILL = {
    RunKind.SYNC: "The provider’s whole list is read: new sandboxes come in, those missing for the second time go stale. "
    "The brake holds: when the list would take too much away, nothing changes and the run says so.",
    RunKind.CLEANUP: "Every sandbox past its deadline and grace is taken back; what was given back is deleted at the provider, "
    "and is free again once it is ready. The jobs do the same every minute.",
}


@require_http_methods(["GET", "HEAD", "POST"])
def order(request: HttpRequest, kind: str) -> HttpResponse:
    """A run is ordered; while one of its kind waits, that one stands for this order, too."""
    actor, now = actor_of(request), SystemClock().now()
    queries.may_operate(actor=actor).require()
    if kind not in set(RunKind):
        raise NotFound("There is no such run: order sync or cleanup.", code="no_such_run_kind")
    if request.method != "POST":
        context = {"title": _TITLES[RunKind(kind)], "will": _WILL[RunKind(kind)], "has_provider": upstream.is_set()}
        return render_page(request, "console/sandboxes/confirm_run.html", context)
    run = operations.order_run(kind=RunKind(kind), actor=actor, now=now)
    messages.success(request, f"The {run.kind.value} is ordered. It leaves this list for “Ended” when it is done.")
    return HttpResponseRedirect(list_url(RESOURCES["sandbox-runs"], "open"))
