"""What whoever decides wants to know besides the request: a row of the queue fetches it when it comes into sight."""

from __future__ import annotations

from typing import Any

from django.http import HttpRequest, HttpResponse
from django.template.response import TemplateResponse
from django.views.decorators.http import require_safe

from accessportal.access_requests import queries
from accessportal.access_requests.states import AccessRequest, Status
from accessportal.identity.middleware import actor_of, book_of
from accessportal.kernel.actors import Actor
from accessportal.kernel.pages import Unreadable
from accessportal.web.past_requests import context_of, habit_of, held_now, is_same_thing

_LATEST = 50


@require_safe
def around(request: HttpRequest, request_id: str) -> HttpResponse:
    """One request's surroundings, in as many reads whatever there was before."""
    actor, book = actor_of(request), book_of(request)
    found = queries.get(request_id=request_id, actor=actor, now=book.now, book=book)
    return TemplateResponse(request, "console/requests/around.html", _surroundings(found, actor, book))


def _surroundings(found: AccessRequest, actor: Actor, book: queries.ApproverBook) -> dict[str, Any]:
    subject, now = found.subject_id, book.now
    unreadable: list[Unreadable] = []
    recent = queries.recent_of(subject_ids=[subject], actor=actor, limit=_LATEST, book=book)[subject]
    by_rule = queries.list_asked_by_rule(rule_name=found.rule_name, actor=actor, limit=_LATEST, book=book)
    open_now = queries.list_open(subject_id=subject, past=unreadable.append)
    past = context_of(found, recent, now=now)
    held = held_now(found, open_now, now=now)
    return {
        "it": found,
        "similar": past.similar,
        "habit": habit_of(by_rule.items),
        # One is shown, and how many more: first what is asked for itself.
        "holds": [
            (one, queries.title_of(request=one), is_same_thing(one, found))
            for one in sorted(held, key=lambda one: not is_same_thing(one, found))
        ],
        "waits": [one for one in open_now if one.status is Status.PENDING and one != found and is_same_thing(one, found)],
        "tally": book.tally(found) if found.status is Status.PENDING else None,
        # One item may stand in several of these lists.
        "unreadable": tuple(dict.fromkeys((*unreadable, *past.unreadable, *by_rule.unreadable))),
        "actor": actor,
        "now": now,
    }
