"""What an actor may do and see, asked anew each time."""

from __future__ import annotations

from collections.abc import Collection
from datetime import datetime

from accessportal.directory.policy import rights as policy
from accessportal.directory.policy.words import key_of
from accessportal.directory.queries.book import Book
from accessportal.directory.queries.roles import rights_on
from accessportal.directory.states import PERMANENT, ROOT, EffectiveRole, Group, GroupRole, GroupVerb, Membership, Person, PersonVerb
from accessportal.directory.store.reading import get_group, get_membership
from accessportal.kernel.actors import Actor
from accessportal.kernel.decisions import Decision
from accessportal.kernel.errors import NotFound


def may(*, verb: str, group: Group | None, actor: Actor, now: datetime) -> Decision:
    """Say whether ``actor`` may do ``verb`` (a :class:`GroupVerb`) with ``group``; without one, with the root."""
    if verb == GroupVerb.LEAVE:
        return may_leave(group=group, actor=actor)
    return verbs_on(group=group, actor=actor, now=now)[GroupVerb(verb)]


def may_leave(*, group: Group | None, actor: Actor) -> Decision:
    """Say whether ``actor`` may leave ``group`` (without one: the root), which they are in for good. Two strong requests."""
    root = get_group(ROOT)
    at = group or root
    if at is None or root is None:
        raise _unfounded()
    key = key_of(actor.name)
    membership = get_membership(key, at.group_id) if key else None
    claims = [claim for claim in membership.claims if claim.is_by_admin] if membership is not None else []
    claim = next((claim for claim in claims if claim.claim_id == PERMANENT), next(iter(claims), None))
    return policy.may_leave(claim, group=at, keepers=root.standing_admins, actor=actor)


def verbs_on(*, group: Group | None, actor: Actor, now: datetime, book: Book | None = None) -> dict[GroupVerb, Decision]:
    """What :func:`may` says of every verb but leaving, for the price of one. Moving still needs the same right at the new place."""
    at = group or get_group(ROOT)
    if at is None:
        raise _unfounded()
    rights = actor_rights_on({at.group_id, at.parent_id or ROOT}, actor=actor, now=now, book=book)
    own = rights.get(at.group_id)
    plain = [verb for verb in GroupVerb if verb not in {GroupVerb.MOVE, GroupVerb.LEAVE}]
    decisions = {verb: policy.may_with_group(verb, group=at, right=own, actor=actor) for verb in plain}
    parents = [at.parent_id] if at.parent_id else []
    return decisions | {GroupVerb.MOVE: policy.may_move(at, parents=parents, rights=rights, actor=actor)}


def may_with_people(*, verb: str, actor: Actor, now: datetime, book: Book | None = None) -> Decision:
    """Say whether ``actor`` may do ``verb`` (a :class:`PersonVerb`) with any person."""
    return policy.may_with_people(PersonVerb(verb), right=actor_right_on(ROOT, actor=actor, now=now, book=book), actor=actor)


def actor_right_on(group_id: str, *, actor: Actor, now: datetime, book: Book | None = None) -> EffectiveRole | None:
    """The actor's own role on a group, with its end. The portal itself is in no group."""
    return actor_rights_on([group_id], actor=actor, now=now, book=book).get(group_id)


def actor_rights_on(group_ids: Collection[str], *, actor: Actor, now: datetime, book: Book | None = None) -> dict[str, EffectiveRole]:
    """The actor's own roles on some groups, of one moment, with their ends."""
    return {} if actor.is_system else rights_on(email=actor.name, group_ids=group_ids, now=now, book=book)


def get_person_for(*, email: str, actor: Actor, now: datetime) -> Person:
    """Get the person for somebody who may see their page: themselves, who reads everything, admins of the root or of a group (or of one
    above) that the person is directly in. :raises NotFound: also when the actor may not see them."""
    return held_by_seen(email=email, actor=actor, now=now, book=Book())[0]


def held_by_seen(*, email: str, actor: Actor, now: datetime, book: Book) -> tuple[Person, tuple[Membership, ...], bool]:
    """Get the person as :func:`get_person_for`, the memberships that the actor may see, and whether these are all: whoever adds somebody to
    their group learns nothing of where else they are."""
    person, memberships = book.held_by(email)
    if person is None:
        raise _unknown()
    if policy.may_see_person(person.key, is_admin_of_theirs=False, actor=actor).allowed:
        return person, memberships, True
    rights = actor_rights_on([ROOT, *(one.group_id for one in memberships)], actor=actor, now=now, book=book)
    admin_on = {group_id for group_id, right in rights.items() if right.role is GroupRole.ADMIN}
    if not policy.may_see_person(person.key, is_admin_of_theirs=bool(admin_on), actor=actor).allowed:
        raise _unknown()
    if ROOT in admin_on:
        return person, memberships, True
    return person, tuple(one for one in memberships if one.group_id in admin_on), False


def _unfounded() -> NotFound:
    return NotFound("The directory has not been founded. Run found_directory.", code="directory_not_founded")


def _unknown() -> NotFound:
    return NotFound("Nobody whom you may see has this address.", code="person_not_found")
