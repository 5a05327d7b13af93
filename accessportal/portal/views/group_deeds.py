"""Managing a group: each deed with one question first."""

from __future__ import annotations

from django.http import Http404, HttpRequest, HttpResponse
from django.views.decorators.http import require_http_methods

from accessportal.directory import queries as directory
from accessportal.identity.middleware import actor_of
from accessportal.kernel.clock import SystemClock
from accessportal.portal.group_deeds import GROUP_DEEDS, address_of, child_id
from accessportal.portal.views.deeds import ask_or_do
from accessportal.portal.views.groups import known


@require_http_methods(["GET", "HEAD", "POST"])
def confirm(request: HttpRequest, deed: str, group_id: str) -> HttpResponse:
    """GET asks the question, POST does it."""
    chosen = GROUP_DEEDS.get(deed)
    if chosen is None:
        raise Http404(f"Nothing called “{deed}” can be done to a group.")
    group = known(group_id)
    may = directory.may(verb=chosen.right, group=group, actor=actor_of(request), now=SystemClock().now())
    where = {"group": group, "back_url": address_of(group_id), "back_label": group.name, "child_prefix": child_id(group, {})}
    return ask_or_do(request, chosen, group, may=may, where=where)
