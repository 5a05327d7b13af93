"""One person: who it is, which groups, which roles, and why."""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any, cast

from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import render
from django.utils.functional import SimpleLazyObject
from django.views.decorators.http import require_http_methods, require_safe

from accessportal.access_requests import queries
from accessportal.access_requests.queries import ApproverBook
from accessportal.access_requests.states import AccessRequest
from accessportal.directory import queries as directory
from accessportal.directory.states import Claim, Explanation, Holding, Inherited, PeopleFound, Person, PersonVerb
from accessportal.identity.middleware import PortalRequest, actor_of, book_of
from accessportal.kernel.actors import Actor
from accessportal.kernel.clock import SystemClock
from accessportal.kernel.errors import InvalidRequest, NotAllowed
from accessportal.kernel.pages import Unreadable
from accessportal.mirror import queries as mirror
from accessportal.portal import live as live_part
from accessportal.portal.deeds import Page, ask_or_do
from accessportal.portal.directory.waiting_for_cognito import waits
from accessportal.rules import queries as rules
from accessportal.web.deeds import Deed
from accessportal.web.events import latest_of
from accessportal.web.names import Names
from accessportal.web.person_deeds import DELETE, DISABLE, PERSON_DEEDS, address_of

_INHERITED = 100
# Each group is one request to the tables: so many with the page, and with each part that is asked for after it.
_GROUPS_WITH_THE_PAGE = 3
_GROUPS_OF_A_PART = 6
_MOST_DIGITS = 6
# Of what ended last, so much is looked through for what ended with the person.
_LAST_ENDED = 25
_QUICK_SECONDS, _CALM_SECONDS = 2, 15
_CHOICES = 10
# No key of the index is longer, whatever letters these are.
_MOST_TYPED = 200
_GROUP_CHOICES = 4
_LIST_ID = re.compile(r"[A-Za-z0-9_-]{1,40}", re.ASCII)


@dataclass(frozen=True, slots=True)
class Reason:
    """One claim, in words for the page. ``request_id`` is empty for what an admin gave."""

    claim: Claim
    by: str
    request_id: str
    counts: bool


@dataclass(frozen=True, slots=True)
class Held:
    """A direct membership, with its reasons and the groups below that it reaches; ``more`` of them are not listed."""

    holding: Holding
    reasons: tuple[Reason, ...]
    reaches: tuple[Inherited, ...]
    more: int

    @property
    def reach(self) -> int:
        return len(self.reaches) + self.more


@dataclass(frozen=True, slots=True)
class Access:
    """One open request for the person or for a group that they are in."""

    request: AccessRequest
    title: str
    through: str


@dataclass(frozen=True, slots=True)
class AccessPart:
    """What the person and some of their groups hold, nearest end first; the groups after the first ``end`` are ``rest``. ``ended``: what
    ended with their being disabled, last ended first."""

    start: int
    end: int
    rest: int
    lines: tuple[Access, ...]
    unreadable: tuple[Unreadable, ...]
    ended: tuple[Access, ...] = ()


@require_safe
def show(request: HttpRequest, email: str) -> HttpResponse:
    """The page, or for htmx a further part of what the person's groups give; 404 for whoever may not see it."""
    if cast(PortalRequest, request).htmx and "groups_from" in request.GET:
        return _further_access(request, email)
    return render(request, "portal/person.html", _page(request, email))


@require_safe
def choices(request: HttpRequest) -> HttpResponse:
    """The people who fit what is typed into a form, for whoever may see them; with ``for=stand_in`` who may be one, with ``groups`` the
    groups, too, or these only. ``list`` is the list's id."""
    text = request.GET.get("text", "")[:_MOST_TYPED].replace("\0", "").strip()
    list_id = request.GET.get("list", "")
    if not _LIST_ID.fullmatch(list_id):
        raise InvalidRequest("Give the id of the list: letters, digits, - and _.", code="list_invalid", field="list")
    book, asked = book_of(request), request.GET.get("groups", "")
    context: dict[str, Any] = {"text": text, "list_id": list_id}
    try:
        if asked != "only":
            context["found"] = _found(request, text, book)
    except NotAllowed as error:
        # The field takes a whole address all the same, and says so.
        context["refused"] = error.message
    if asked:
        context["groups"] = directory.search_groups(text=text, limit=_GROUP_CHOICES)
    return render(request, "portal/choices_people.html", context)


def _found(request: HttpRequest, text: str, book: ApproverBook) -> PeopleFound:
    actor = actor_of(request)
    if request.GET.get("for") == "stand_in":
        return queries.look_up_stand_ins(text=text, limit=_CHOICES, actor=actor, book=book)
    return directory.look_up_people(text=text, limit=_CHOICES, actor=actor, now=book.now, book=book.directory)


def _further_access(request: HttpRequest, email: str) -> HttpResponse:
    actor, book = actor_of(request), book_of(request)
    person = directory.get_person_for(email=email, actor=actor, now=book.now)
    if not _sees_requests(person, actor):
        raise NotAllowed("What somebody holds is shown to themselves, operators and auditors.", code="not_a_reader")
    part = _access(person, _groups_from(request), _GROUPS_OF_A_PART, book)
    return render(request, "portal/person_access.html", {"person": person, "access": part, "is_part": True})


@require_safe
def live(request: HttpRequest, email: str) -> HttpResponse:
    """What changes on the page, asked for while Cognito is behind, and while somebody is disabled."""
    return live_part.answer(request, "portal/person_live.html", _page(request, email))


@require_http_methods(["GET", "HEAD", "POST"])
def confirm(request: HttpRequest, email: str, deed: str) -> HttpResponse:
    """Something that admins of the root do to a person: GET asks, POST does it."""
    chosen = PERSON_DEEDS.get(deed)
    if chosen is None:
        raise Http404(f"Nothing called “{deed}” can be done to a person.")
    actor, now = actor_of(request), SystemClock().now()
    person = directory.get_person_for(email=email, actor=actor, now=now)
    directory.may_with_people(verb=PersonVerb(deed), actor=actor, now=now).require()
    # Read by the page that asks, and no obstacle to the deed.
    about = {"person": person, "ending": SimpleLazyObject(lambda: queries.what_ends_with(subject_id=person.key))}
    summary = "portal/person_ends.html" if chosen in (DISABLE, DELETE) else ""
    return ask_or_do(request, chosen, person, Page(address_of(person.email), person.name, about, summary=summary))


def _page(request: HttpRequest, email: str) -> dict[str, Any]:
    actor, now, book = actor_of(request), book_of(request).now, book_of(request).directory
    explained = directory.explain_person(email=email, actor=actor, now=now, book=book)
    person = explained.person
    work = mirror.find_pending(person.entity)
    waiting = waits(request)
    names = Names(book)
    is_self = person.key == actor.name
    sees_requests = _sees_requests(person, actor)
    direct = frozenset(holding.membership.group_id for holding in explained.direct)
    access = _access(person, _groups_from(request), _GROUPS_WITH_THE_PAGE, book_of(request)) if sees_requests else None
    if access is not None and not person.is_enabled:
        access = _with_ended(access, person)
    context = {
        "person": person,
        "is_self": is_self,
        "is_whole": explained.is_whole,
        "held": [_held(holding, explained, names, now) for holding in explained.direct],
        "counts_in": sorted(explained.groups),
        "reach": rules.reach_of_person(subject=person.key, groups=explained.groups, direct=direct) if sees_requests else (),
        "access": access,
        "unreadable": access.unreadable if access is not None else (),
        "sees_requests": sees_requests,
        "deeds": _offered(person, actor, now, book),
        "behind": work,
        "waits": waiting,
        "look_seconds": _seconds_to_next_look(person, access, is_behind=work is not None or any(not one.is_done for one in waiting)),
        **(latest_of(person) if actor.reads_everything else {}),
        "now": now,
    }
    return live_part.rendered(request, "portal/person_body.html", context)


def _sees_requests(person: Person, actor: Actor) -> bool:
    return person.key == actor.name or actor.reads_everything


def _with_ended(part: AccessPart, person: Person) -> AccessPart:
    """Also what they asked for and had until they were disabled."""
    page = queries.list_ended(requested_by=person.key, limit=_LAST_ENDED)
    found = [one for one in page.items if one.end_code == "subject_disabled" and one.subject_id == person.key]
    lines = tuple(_line(person.key, one, person) for one in found)
    return replace(part, ended=lines, unreadable=(*part.unreadable, *page.unreadable))


def _seconds_to_next_look(person: Person, access: AccessPart | None, *, is_behind: bool) -> int | None:
    """What somebody held ends soon after they were disabled; the list of what is over may lag."""
    if is_behind or (not person.is_enabled and access is not None and any(not one.through for one in access.lines)):
        return _QUICK_SECONDS
    return _CALM_SECONDS if access is not None and not person.is_enabled else None


def _groups_from(request: HttpRequest) -> int:
    """How many of the groups were shown before; what is no number begins anew."""
    text = request.GET.get("groups_from", "")
    return int(text) if text.isascii() and text.isdecimal() and len(text) < _MOST_DIGITS else 0


def _held(holding: Holding, explained: Explanation, names: Names, now: datetime) -> Held:
    membership = holding.membership
    reasons = tuple(
        Reason(
            claim=claim,
            by=names(claim.given_by) if claim.is_by_admin else "",
            request_id=claim.request_id,
            counts=claim.counts_at(now),
        )
        for claim in membership.claims
    )
    reaches = tuple(one for one in explained.inherited if one.source_id == membership.group_id)
    return Held(holding, reasons, reaches[:_INHERITED], more=max(len(reaches) - _INHERITED, 0))


def _access(person: Person, start: int, most: int, book: ApproverBook) -> AccessPart:
    unreadable: list[Unreadable] = []
    part = queries.list_open_through(email=person.key, start=start, most=most, book=book, past=unreadable.append)
    lines = tuple(_line(subject, one, person) for subject, one in part.found)
    return AccessPart(start, part.end, part.rest, lines, tuple(unreadable))


def _line(subject: str, one: AccessRequest, person: Person) -> Access:
    return Access(one, queries.describe(request=one).title, "" if subject == person.key else subject)


def _offered(person: Person, actor: Actor, now: datetime, book: directory.Book) -> list[Deed[Person]]:
    # Whoever may do one of them may do all: they are for the root's admins. Asked once, decided anew by each operation.
    if not directory.may_with_people(verb=PersonVerb.DISABLE, actor=actor, now=now, book=book).allowed:
        return []
    return [deed for deed in PERSON_DEEDS.values() if deed.fits(person)]
