"""Who stands in for whom."""

from __future__ import annotations

from dataclasses import replace
from datetime import datetime, timedelta

from accessportal.access_requests import policy, store
from accessportal.access_requests.config import current
from accessportal.access_requests.queries.approvers import ApproverBook
from accessportal.access_requests.stand_in import StandIn
from accessportal.directory import queries as directory
from accessportal.directory.states import PeopleFound
from accessportal.kernel.actors import Actor
from accessportal.kernel.decisions import Decision
from accessportal.kernel.errors import NotAllowed, NotFound
from accessportal.kernel.pages import Page, Unreadable


def find_stand_in(*, stand_in: str, stand_in_id: str, actor: Actor) -> StandIn:
    """Find one, strongly read. :raises NotFound: when there is none, or the actor may not see it."""
    one = store.find_stand_in(stand_in, stand_in_id)
    if one is None or not policy.may_see_stand_in(one, actor).allowed:
        raise NotFound("There is no such stand-in.", code="stand_in_not_found")
    return one


def list_named(*, actor: Actor, cursor: str | None = None, limit: int = 25) -> Page[StandIn]:
    """Whom the actor has named, last end first; it may lag a moment."""
    return store.page_of_approver(actor.name, cursor=cursor, limit=limit)


def list_stood_in_for(*, actor: Actor, now: datetime, past: list[Unreadable]) -> tuple[StandIn, ...]:
    """For whom the actor stands in, now or later, strongly read; those that can't be read are added to ``past``."""
    return tuple(one for one in store.stand_ins_of(actor.name, now=now, past=past.append) if not one.state(now).is_for_good)


def list_stand_ins(*, ends_after: datetime | None = None, actor: Actor, cursor: str | None = None, limit: int = 50) -> Page[StandIn]:
    """All of everybody that end after a moment, or all there are, last end first; it may lag a moment."""
    if not actor.reads_everything:
        raise NotAllowed("Only operators and auditors may list everybody's stand-ins.", code="not_a_reader")
    return store.page_of_stand_ins(ends_after=ends_after, cursor=cursor, limit=limit)


def may_name_stand_in(*, actor: Actor, book: ApproverBook) -> Decision:
    """Whether the actor may name somebody."""
    return policy.may_name_stand_in(is_approver=not actor.is_system and bool(book.rules_of_approver(actor.name)))


def look_up_stand_ins(*, text: str, limit: int, actor: Actor, book: ApproverBook) -> PeopleFound:
    """Find whom the actor may name, by the beginning of an address or name: whom they may look up anyway, and who decides by the same rules
    (:meth:`ApproverBook.beside`). :raises NotAllowed: for who is no approver.
    """
    may_name_stand_in(actor=actor, book=book).require()
    among, beside = book.beside(actor.name)
    found = directory.look_up_people(text=text, limit=limit + 1, actor=actor, now=book.now, book=book.directory, among=among, beside=beside)
    people = [one for one in found.people if one.is_enabled and one.key != actor.name]
    return replace(found, people=tuple(people[:limit]), is_more=found.is_more or len(people) > limit)


def longest_stand_in() -> timedelta:
    """For how long one may be named at most."""
    return timedelta(days=current().stand_in_days)
