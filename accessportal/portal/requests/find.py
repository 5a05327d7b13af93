"""One box that finds what may be asked for, of every kind, by what people type."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import cast
from urllib.parse import urlencode

from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.urls import reverse
from django.views.decorators.http import require_safe

from accessportal.access_requests import queries
from accessportal.access_requests.kind import Kind
from accessportal.access_requests.offers import Choice, Seeker
from accessportal.access_requests.queries import ApproverBook
from accessportal.identity.middleware import PortalRequest, actor_of, book_of
from accessportal.kernel.actors import Actor
from accessportal.portal.requests.asking import LATELY, offered_kinds
from accessportal.web.forms import MAX_NAME

_OF_EACH_KIND = 5


@dataclass(frozen=True, slots=True)
class Thing:
    """Something to ask for; ``url`` is the form of its kind, with it filled in."""

    kind: Kind
    choice: Choice
    url: str


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
        name = kind.fields.target[0].name
        for choice in list(_choices(kind, text, seeker, actor, book))[:_OF_EACH_KIND] if seeker.served else ():
            yield Thing(kind, choice, f"{reverse('new_request', args=[kind.name])}?{urlencode({name: choice.value})}")


def _choices(kind: Kind, text: str, seeker: Seeker, actor: Actor, book: ApproverBook) -> Iterable[Choice]:
    """Of the field that a kind asks first."""
    first = kind.fields.target[0]
    if first.search is not None:
        return first.search(text, seeker).offered
    words = text.casefold().split()
    few = first.choices(actor, book.directory, book.now) if first.choices else ()
    # People who want any of a kind type what the kind is called.
    return [Choice(value, label) for value, label in few if all(word in f"{label} {kind.fields.name}".casefold() for word in words)]
