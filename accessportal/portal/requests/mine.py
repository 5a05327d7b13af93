"""Everything that somebody asked for, narrowed by kind, state and days."""

from __future__ import annotations

from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.urls import reverse
from django.utils.http import urlencode
from django.views.decorators.http import require_safe

from accessportal.access_requests import queries
from accessportal.access_requests.kind import KINDS, kind_named
from accessportal.access_requests.states import AccessRequest
from accessportal.identity.middleware import actor_of, book_of
from accessportal.kernel.actors import Actor
from accessportal.kernel.clock import zone_named
from accessportal.kernel.errors import InvalidRequest
from accessportal.kernel.pages import Page
from accessportal.portal.requests.rows import ended_rows
from accessportal.web.narrowing import STATES, narrowed

_PAGE = 25
_ASKED = ("kind", "state", "since", "until")


@require_safe
def show(request: HttpRequest) -> HttpResponse:
    """One page of it, newest first."""
    actor, book = actor_of(request), book_of(request)
    given = {name: request.GET.get(name, "").strip() for name in (*_ASKED, "zone")}
    cursor, page, error, refused = request.GET.get("cursor") or None, None, "", ""
    try:
        page = _fetch(given, actor, cursor)
    except InvalidRequest as problem:
        if problem.field not in given:
            raise
        error, refused = problem.message, problem.field
    here = f"{reverse('my_requests')}?{urlencode({name: value for name, value in given.items() if value})}"
    context = {
        "given": given,
        "error": error,
        "refused": refused,
        "kinds": [(name, kind.fields.name) for name, kind in KINDS.items()],
        "states": [(state.value, word) for state, word in STATES.items()],
        "rows": ended_rows(page.items if page else (), actor=actor, book=book),
        "unreadable": page.unreadable if page else (),
        "is_narrowed": any(given[name] for name in _ASKED),
        "is_first_page": cursor is None,
        "first_url": here,
        "next_url": f"{here}&{urlencode({'cursor': page.next_cursor})}" if page and page.next_cursor else "",
        "now": book.now,
    }
    return render(request, "portal/my_requests.html", context, status=400 if error else 200)


def _fetch(given: dict[str, str], actor: Actor, cursor: str | None) -> Page[AccessRequest]:
    kind = kind_named(given["kind"]).name if given["kind"] else ""
    search = narrowed(given, zone=zone_named(given["zone"]))
    return queries.list_mine(actor=actor, kind=kind, search=search, cursor=cursor, limit=_PAGE)
