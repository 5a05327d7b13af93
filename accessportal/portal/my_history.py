"""Everything that somebody had, for themselves."""

from __future__ import annotations

from datetime import datetime
from functools import partial

from django.http import HttpRequest, HttpResponse, HttpResponseBase
from django.shortcuts import render
from django.urls import reverse
from django.utils.http import urlencode
from django.views.decorators.http import require_safe

from accessportal.history import queries
from accessportal.identity.middleware import actor_of, book_of
from accessportal.kernel.actors import Actor
from accessportal.kernel.errors import InvalidRequest
from accessportal.web.exporting import FORMS, ROWS_AT_ONCE, Listed, require_inputs, send
from accessportal.web.holdings import FILE_COLUMNS, USUAL_TIME, AnswerPage, names_of, page_of
from accessportal.web.moments import in_utc, read_moment, to_text

_PAGE = 25


@require_safe
def show(request: HttpRequest) -> HttpResponse:
    """One page of it, of the time that was asked for."""
    given, page, error = _given(request), None, ""
    cursor = request.GET.get("cursor") or None
    try:
        page = _fetch(given, actor_of(request), cursor, limit=_PAGE)
    except InvalidRequest as refused:
        if refused.field not in given:
            raise
        error = refused.message
    names = names_of(page.items) if page else {}
    here = f"{reverse('my_history')}?{urlencode(given)}"
    context = {
        "given": given,
        "error": error,
        "page": page,
        "rows": [{"record": held, "context": names.get(held.interval.thing.name, "")} for held in page.items] if page else [],
        "unreadable": page.unreadable if page else (),
        "is_first_page": cursor is None,
        "first_url": here,
        "next_url": f"{here}&{urlencode({'cursor': page.next_cursor})}" if page and page.next_cursor else "",
        "exports": [(form.upper(), f"{reverse('my_history_export', args=[form])}?{urlencode(given)}") for form in FORMS],
    }
    return render(request, "portal/my_history.html", context, status=400 if error else 200)


@require_safe
def export(request: HttpRequest, form: str) -> HttpResponseBase:
    """All of it as a file."""
    given, actor = _given(request), actor_of(request)
    require_inputs(request.GET, [*given])
    fetch = partial(_fetch, given, actor, limit=ROWS_AT_ONCE)
    return send(Listed(name="my-history", columns=FILE_COLUMNS, fetch=fetch, asked=given, now=book_of(request).now), form)


def _given(request: HttpRequest) -> dict[str, str]:
    """The time, as it is typed or as it is without that."""
    now: datetime = book_of(request).now
    usual = {"from": now - USUAL_TIME, "to": now}
    typed = {name: request.GET.get(name, "").strip() for name in usual}
    zone = request.GET.get("zone", "")
    return {name: in_utc(text, zone=zone) if text else to_text(usual[name]) for name, text in typed.items()}


def _fetch(given: dict[str, str], actor: Actor, cursor: str | None, *, limit: int) -> AnswerPage:
    begin, end = (read_moment(given[name], field=name) for name in ("from", "to"))
    return page_of(queries.what_had(email=actor.name, begin=begin, end=end, cursor=cursor, limit=limit, actor=actor))
