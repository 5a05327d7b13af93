"""My access: what I hold, what waits, what ended."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import timedelta
from typing import Any, cast

from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.views.decorators.http import require_safe

from accessportal.access_requests import queries
from accessportal.access_requests.queries import ApproverBook
from accessportal.directory import queries as directory
from accessportal.directory.states import Claim, Membership
from accessportal.identity.middleware import PortalRequest, actor_of, book_of
from accessportal.kernel.actors import Actor
from accessportal.kernel.pages import Unreadable
from accessportal.portal.requests.asking import Again, again
from accessportal.portal.requests.lent import lent_to_all, mark_of_all
from accessportal.portal.requests.rows import ended_rows, open_list
from accessportal.web.names import Names
from accessportal.web.stand_in_deeds import named

_ENDED_PAGE = 15
# So many of what waits are shown, of a page of the queue.
_FOR_ME, _FOR_ME_PAGE = 3, 25
# Each group is one request to the tables; what the others give is asked for after the page.
_GROUPS_WITH_THE_PAGE = 4
# What others did to somebody is told on their first page for so long, and stays on their own page.
_TOLD_FOR = timedelta(days=14)
_MOST_TOLD = 5


@require_safe
def show(request: HttpRequest) -> HttpResponse:
    """The page; for htmx only the part that was asked for: the open requests, or more of the ended ones."""
    actor, book = actor_of(request), book_of(request)
    now = book.now
    asked = request.GET.get("part", "") if cast(PortalRequest, request).htmx else ""
    if asked == "ended":
        return render(request, "portal/home_ended.html", _ended(request, actor, book))
    unreadable: list[Unreadable] = []
    part = queries.list_open_through(email=actor.name, most=_GROUPS_WITH_THE_PAGE, book=book, past=unreadable.append)
    current = tuple(one for _, one in part.found)
    lent = lent_to_all(current, now)
    mark = mark_of_all(current, lent, now)
    if asked == "open" and request.GET.get("mark") == mark:
        return HttpResponse(status=204)
    context = open_list(current, lent, actor, book) | {"mark": mark, "unreadable": unreadable, "part": part}
    if asked == "open":
        return render(request, "portal/home_open.html", context)
    context |= _ended(request, actor, book)
    return render(request, "portal/home.html", context | {"put_into": _put_into(actor, book), "again": _again(context)})


@require_safe
def for_me(request: HttpRequest) -> HttpResponse:
    """What waits for the actor's decision, nearest deadline first; fetched after the page, and nothing for who decides nowhere."""
    actor, book = actor_of(request), book_of(request)
    found = queries.first_waiting_for(actor=actor, now=book.now, limit=_FOR_ME_PAGE, book=book)
    titles = [(one, queries.title_of(request=one), queries.describe(request=one)) for one in found.items[:_FOR_ME]]
    context = {
        "standing_in": named(book.stand_ins_of(actor), book),
        "waiting": titles,
        "count": found.total,
        "unreadable": found.unreadable,
        "now": book.now,
    }
    return render(request, "portal/home_for_me.html", context)


def _again(context: Mapping[str, Any]) -> list[Again]:
    """What has ended lately and is not on the page as held or waiting."""
    shown = {row.title for row in (*context["active"], *context["waiting"])}
    return [one for one in again(row.request for row in context["ended"]) if one.title not in shown]


def _put_into(actor: Actor, book: ApproverBook) -> list[tuple[Membership, Claim, str]]:
    """The groups that others have put the actor into lately, and who: rules that name them see the actor."""
    names = Names(book.directory)
    newest = directory.put_into(email=actor.name, since=book.now - _TOLD_FOR, book=book.directory)[:_MOST_TOLD]
    book.directory.people(claim.given_by for _, claim in newest)
    return [(one, claim, names(claim.given_by)) for one, claim in newest]


def _ended(request: HttpRequest, actor: Actor, book: ApproverBook) -> dict[str, Any]:
    page = queries.list_ended(requested_by=actor.name, cursor=request.GET.get("cursor") or None, limit=_ENDED_PAGE)
    return {
        "ended": ended_rows(page.items, actor=actor, book=book),
        "ended_unreadable": page.unreadable,
        "next_cursor": page.next_cursor,
        "is_first_page": not request.GET.get("cursor"),
        "now": book.now,
    }
