"""The check of one entity's chain, for any entity of the audit log."""

from __future__ import annotations

from django.http import HttpRequest, HttpResponse
from django.views.decorators.http import require_safe

from accessportal.audit import queries
from accessportal.console.resource import Right
from accessportal.console.resources import RESOURCES
from accessportal.console.views import list_url, render_page
from accessportal.identity.middleware import actor_of
from accessportal.kernel.errors import NotFound


@require_safe
def check(request: HttpRequest) -> HttpResponse:
    """Whether every event of ``?entity=`` is what its hashes say. :raises NotFound: when it has no events at all."""
    Right.READERS.require(actor_of(request))
    entity = request.GET.get("entity", "").strip()
    if not entity or not queries.history(entity, limit=1).items:
        raise NotFound("There are no events for this entity.", code="entity_unknown")
    context = {
        "title": f"Chain of {entity}",
        "entity": entity,
        "breaks": queries.find_breaks(entity),
        "back_url": list_url(RESOURCES["audit"], "entity", entity),
    }
    return render_page(request, "console/audit/chain.html", context)
