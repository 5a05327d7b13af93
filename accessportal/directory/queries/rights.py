"""What an actor may do and see, asked anew each time."""

from __future__ import annotations

from collections.abc import Collection
from datetime import datetime

from accessportal.directory import policy, store
from accessportal.directory.queries.roles import held_by, lasting_role_on, role_on, roles_on
from accessportal.directory.states import ROOT, Group, GroupRole, GroupVerb, Membership, Person, PersonVerb
from accessportal.kernel.actors import Actor
from accessportal.kernel.decisions import Decision
from accessportal.kernel.errors import NotFound


def may(*, verb: str, group: Group | None, actor: Actor, now: datetime) -> Decision:
    """Whether ``actor`` may do ``verb`` (a :class:`GroupVerb`) with ``group``; without one, with the root.

    :raises Unavailable: when the store did not answer.
    """
    return verbs_on(group=group, actor=actor, now=now)[GroupVerb(verb)]


def verbs_on(*, group: Group | None, actor: Actor, now: datetime) -> dict[GroupVerb, Decision]:
    """What :func:`may` says of every verb, for the price of one. Moving still needs the same right at the new place."""
    at = group or store.get_group(ROOT)
    if at is None:
        raise NotFound("The directory has not been founded. Run found_directory.", code="directory_not_founded")
    roles = actor_roles_on({at.group_id, at.parent_id or ROOT}, actor=actor, now=now)
    own = roles.get(at.group_id)
    decisions = {verb: policy.may_with_group(verb, group=at, role=own, actor=actor) for verb in GroupVerb if verb is not GroupVerb.MOVE}
    parents = [at.parent_id] if at.parent_id else []
    return decisions | {GroupVerb.MOVE: policy.may_move(at, parents=parents, roles=roles, actor=actor)}


def may_with_people(*, verb: str, actor: Actor, now: datetime) -> Decision:
    """Whether ``actor`` may do ``verb`` (a :class:`PersonVerb`) with any person.

    :raises Unavailable: when the store did not answer.
    """
    return policy.may_with_people(PersonVerb(verb), root_role=actor_role_on(ROOT, actor=actor, now=now), actor=actor)


def actor_role_on(group_id: str, *, actor: Actor, now: datetime) -> GroupRole | None:
    """The actor's own role on a group. The portal itself is in no group."""
    return None if actor.is_system else role_on(email=actor.name, group_id=group_id, now=now)


def lasting_role_of(*, actor: Actor, group_id: str) -> GroupRole | None:
    """The actor's own role on a group as far as it has no end: what requests give is left out.

    :raises Unavailable: when the store did not answer.
    """
    return None if actor.is_system else lasting_role_on(email=actor.name, group_id=group_id)


def actor_roles_on(group_ids: Collection[str], *, actor: Actor, now: datetime) -> dict[str, GroupRole]:
    """The actor's own roles on some groups, of one moment."""
    return {} if actor.is_system else roles_on(email=actor.name, group_ids=group_ids, now=now)


def get_person_for(*, email: str, actor: Actor, now: datetime) -> Person:
    """The person, for somebody who may see their page: themselves, operators, auditors, admins of the root, and admins of a
    group (or of one above it) that the person is directly in.

    :raises NotFound: when nobody has this address, and just so when the actor may not see them.
    :raises Unavailable: when the store did not answer.
    """
    return held_by_seen(email=email, actor=actor, now=now)[0]


def held_by_seen(*, email: str, actor: Actor, now: datetime) -> tuple[Person, tuple[Membership, ...]]:
    """As :func:`get_person_for`, with every membership; of one moment."""
    person, memberships = held_by(email)
    if person is None:
        raise _unknown()
    if policy.may_see_person(person.key, is_admin_of_theirs=False, actor=actor).allowed:
        return person, memberships
    roles = actor_roles_on([ROOT, *(one.group_id for one in memberships)], actor=actor, now=now)
    is_admin = GroupRole.ADMIN in roles.values()
    if not policy.may_see_person(person.key, is_admin_of_theirs=is_admin, actor=actor).allowed:
        raise _unknown()
    return person, memberships


def _unknown() -> NotFound:
    return NotFound("Nobody whom you may see has this address.", code="person_not_found")
