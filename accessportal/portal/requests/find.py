"""One box that finds what may be asked for, of every kind, by what people type."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import cast
from urllib.parse import urlencode

from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.urls import reverse
from django.views.decorators.http import require_safe

from accessportal.access_requests import queries
from accessportal.access_requests.kind import Field, Kind
from accessportal.access_requests.offers import Choice, Seeker
from accessportal.access_requests.queries import ApproverBook
from accessportal.identity.middleware import PortalRequest, actor_of, book_of
from accessportal.kernel.actors import Actor
from accessportal.portal.requests.asking import LATELY, offered_kinds
from accessportal.web.forms import MAX_NAME

_OF_EACH_KIND = 5
# So many ways to have what fits best are named at once, like the permission sets of an account.
_WAYS = 3


@dataclass(frozen=True, slots=True)
class Thing:
    """Something to ask for; ``url`` is the form of its kind, with it filled in. ``way``: what of it, where that is asked, too."""

    kind: Kind
    choice: Choice
    url: str
    way: str = ""


@require_safe
def show(request: HttpRequest) -> HttpResponse:
    """What fits; for the box alone a list, and without scripts a page."""
    actor, book = actor_of(request), book_of(request)
    text = request.GET.get("find", "")[:MAX_NAME].replace("\0", "").strip()
    is_part = cast(PortalRequest, request).htmx
    template = "portal/found.html" if is_part else "portal/find.html"
    return render(request, template, {"found": list(_things(text, actor, book)), "text": text})


def _things(text: str, actor: Actor, book: ApproverBook) -> Iterator[Thing]:
    """The first few of each kind of which some rule offers the actor something."""
    lately = queries.list_mine(actor=actor, limit=LATELY).items
    for kind in offered_kinds(book).values():
        seeker = queries.seeker_of(kind=kind.name, given={}, actor=actor, book=book, lately=lately)
        if not seeker.served:
            continue
        found = _choices(kind, text, seeker, actor, book)
        if not found and " " in text and _second(kind) is not None:
            # “payments power”: the last word is about the second field.
            text_of_first, wanted = text.rsplit(maxsplit=1)
            found = _choices(kind, text_of_first, seeker, actor, book)
            yield from (thing for choice in found[:_OF_EACH_KIND] for thing in _ways(kind, choice, wanted, seeker)[:_WAYS])
            continue
        ways = _ways(kind, found[0], "", seeker) if found else []
        yield from ways[:_WAYS]
        # What all its ways name needs no line of its own.
        whole = found[1:] if 0 < len(ways) <= _WAYS else found
        yield from (Thing(kind, choice, _form(kind, choice)) for choice in whole[:_OF_EACH_KIND])


def _second(kind: Kind) -> Field | None:
    """The other field of a form that asks for two things, each from a list."""
    first, *others = kind.fields.target
    return others[0] if first.is_searched and len(others) == 1 and others[0].is_searched else None


def _ways(kind: Kind, choice: Choice, wanted: str, seeker: Seeker) -> list[Thing]:
    """What may be asked for there by the second field, as ``account · permission set``."""
    second = _second(kind)
    if second is None or second.search is None:
        return []
    there = replace(seeker, given={kind.fields.target[0].name: choice.value})
    found = second.search(wanted, there).offered
    return [Thing(kind, choice, _form(kind, choice, **{second.name: one.value}), one.name) for one in found]


def _form(kind: Kind, choice: Choice, **others: str) -> str:
    given = {kind.fields.target[0].name: choice.value, **others}
    return f"{reverse('new_request', args=[kind.name])}?{urlencode(given)}"


def _choices(kind: Kind, text: str, seeker: Seeker, actor: Actor, book: ApproverBook) -> Sequence[Choice]:
    """Of the field that a kind asks first."""
    first = kind.fields.target[0]
    if first.search is not None:
        return first.search(text, seeker).offered
    words = text.casefold().split()
    few = first.choices(actor, book.directory, book.now) if first.choices else ()
    # People who want any of a kind type what the kind is called.
    return [Choice(value, label) for value, label in few if all(word in f"{label} {kind.fields.name}".casefold() for word in words)]
