"""In which groups a few people are and what they hold now: asked for after the list, because it costs two reads for each."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from urllib.parse import urlencode

from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.urls import reverse
from django.views.decorators.http import require_safe

from accessportal.access_requests import queries as requests
from accessportal.console.resource import Right
from accessportal.directory.queries import Book
from accessportal.identity.middleware import actor_of, book_of
from accessportal.kernel.counts import Count
from accessportal.kernel.errors import InvalidRequest
from accessportal.store.reading import side_by_side

PEOPLE_AT_ONCE = 5
_NAMED_GROUPS = 2
_MOST_DIGITS = 4


@dataclass(frozen=True, slots=True)
class Held:
    """Of one person, who stands on the list at ``number``: the groups that they are in by themselves, and what is open of theirs."""

    number: int
    key: str
    groups: tuple[str, ...]
    active: str
    waiting: int

    @property
    def named(self) -> tuple[str, ...]:
        return self.groups[:_NAMED_GROUPS]

    @property
    def others(self) -> int:
        return len(self.groups) - len(self.named)


def address_of(first: int, keys: list[str]) -> str:
    """Where the list asks for these people, the first of whom stands on it at ``first``."""
    return f"{reverse('admin:console_people_holdings')}?{urlencode({'first': first, 'key': keys}, doseq=True)}"


@require_safe
def show(request: HttpRequest) -> HttpResponse:
    """The cells of a few rows of the list, each swapped into its place."""
    Right.READERS.require(actor_of(request))
    keys, first = request.GET.getlist("key"), request.GET.get("first", "")
    if len(keys) > PEOPLE_AT_ONCE:
        raise InvalidRequest(f"Ask for {PEOPLE_AT_ONCE} people at once, not for {len(keys)}.", code="too_many", field="key")
    if not (first.isascii() and first.isdecimal() and len(first) <= _MOST_DIGITS):
        raise InvalidRequest("Say with a number where the first person stands on the list.", code="place_invalid", field="first")
    now = book_of(request).now
    read = side_by_side([partial(Book().held_by, key) for key in keys])
    known = [(int(first) + at, person.key, memberships) for at, (person, memberships) in enumerate(read) if person is not None]
    opened = side_by_side([partial(requests.what_ends_with, subject_id=key) for _, key, _ in known])
    held = []
    for (number, key, memberships), ending in zip(known, opened, strict=True):
        groups = tuple(one.group_id for one in memberships if one.role_at(now))
        active = Count(len(ending.active), is_more=bool(ending.unreadable)).words or "0"
        held.append(Held(number, key, groups, active, len(ending.waiting)))
    return render(request, "console/people/holdings.html", {"held": held})
