"""Explain why a person has their rights."""

from __future__ import annotations

from datetime import datetime

from accessportal.directory.queries.book import Book
from accessportal.directory.queries.lists import tree
from accessportal.directory.queries.rights import held_by_seen
from accessportal.directory.queries.roles import groups_through
from accessportal.directory.states import Explanation, Group, Holding, Inherited, Membership, Person
from accessportal.kernel.actors import Actor


def explain_person(*, email: str, actor: Actor, now: datetime, book: Book | None = None) -> Explanation:
    """Explain what the person's direct memberships give, there and on groups below, at ``now``. The groups below come from the index and
    may lag. Whoever is admin of some of the groups alone sees these alone."""
    book = book or Book()
    person, memberships, is_whole = held_by_seen(email=email, actor=actor, now=now, book=book)
    counted = groups_through(memberships, now=now, book=book)
    groups = book.groups(one.group_id for one in memberships)
    direct = tuple(_holding(person, one, groups.get(one.group_id), now) for one in memberships)
    return Explanation(
        person=person,
        direct=direct,
        inherited=_inherited(direct),
        groups=frozenset(counted) if person.is_enabled else frozenset(),
        is_whole=is_whole,
    )


def _holding(person: Person, membership: Membership, group: Group | None, now: datetime) -> Holding:
    reason = ""
    if not person.is_enabled:
        reason = "The person is disabled."
    elif group is None:
        reason = "The group does not exist any more."
    elif not group.is_enabled:
        reason = "The group is disabled."
    elif membership.role_at(now) is None:
        reason = "Its time is up."
    return Holding(membership, group, role=None if reason else membership.role_at(now), reason=reason)


def _inherited(direct: tuple[Holding, ...]) -> tuple[Inherited, ...]:
    """The groups below with a higher role from above than of their own. Of equal ones from above the nearest is the source."""
    own = {one.membership.group_id: one.role for one in direct if one.role is not None}
    if not own:
        return ()
    found = []
    for group in tree().groups.values():
        sources = [group_id for group_id in group.ancestors if group_id in own]
        if not sources or not group.is_enabled:
            continue
        source = max(reversed(sources), key=lambda group_id: own[group_id].rank)
        mine = own.get(group.group_id)
        if mine is None or mine.rank < own[source].rank:
            found.append(Inherited(group.group_id, own[source], source))
    return tuple(found)
