"""What an actor may do and see, asked anew each time."""

from __future__ import annotations

from collections.abc import Collection
from datetime import datetime

from accessportal.directory import policy, store
from accessportal.directory.queries.roles import held_by, lasting_role_on, role_on, roles_on
from accessportal.directory.states import PERMANENT, ROOT, Group, GroupRole, GroupVerb, Membership, Person, PersonVerb
from accessportal.kernel.actors import Actor
from accessportal.kernel.decisions import Decision
from accessportal.kernel.errors import NotFound


def may(*, verb: str, group: Group | None, actor: Actor, now: datetime) -> Decision:
    """Whether ``actor`` may do ``verb`` (a :class:`GroupVerb`) with ``group``; without one, with the root.

    :raises Unavailable: when the store did not answer.
    """
    if verb == GroupVerb.LEAVE:
        return may_leave(group=group, actor=actor)
    return verbs_on(group=group, actor=actor, now=now)[GroupVerb(verb)]


def may_leave(*, group: Group | None, actor: Actor) -> Decision:
    """Whether ``actor`` may leave ``group`` (without one: the root), which they are in for good. Two strong requests.

    :raises Unavailable: when the store did not answer.
    """
    root = store.get_group(ROOT)
    at = group or root
    if at is None or root is None:
        raise _unfounded()
    key = policy.key_of(actor.name)
    membership = store.get_membership(key, at.group_id) if key else None
    claim = membership.claim(PERMANENT) if membership is not None else None
    return policy.may_leave(claim, group=at, keepers=root.standing_admins, actor=actor)


def verbs_on(*, group: Group | None, actor: Actor, now: datetime) -> dict[GroupVerb, Decision]:
    """What :func:`may` says of every verb but leaving, for the price of one. Moving still needs the same right at the new place."""
    at = group or store.get_group(ROOT)
    if at is None:
        raise _unfounded()
    roles = actor_roles_on({at.group_id, at.parent_id or ROOT}, actor=actor, now=now)
    own = roles.get(at.group_id)
    plain = [verb for verb in GroupVerb if verb not in {GroupVerb.MOVE, GroupVerb.LEAVE}]
    decisions = {verb: policy.may_with_group(verb, group=at, role=own, actor=actor) for verb in plain}
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


def held_by_seen(*, email: str, actor: Actor, now: datetime) -> tuple[Person, tuple[Membership, ...], bool]:
    """As :func:`get_person_for`, with the memberships that the actor may see, and whether these are all; of one moment.

    Whoever adds somebody to their group learns nothing of where else they are.
    """
    person, memberships = held_by(email)
    if person is None:
        raise _unknown()
    if policy.may_see_person(person.key, is_admin_of_theirs=False, actor=actor).allowed:
        return person, memberships, True
    roles = actor_roles_on([ROOT, *(one.group_id for one in memberships)], actor=actor, now=now)
    is_admin = GroupRole.ADMIN in roles.values()
    if not policy.may_see_person(person.key, is_admin_of_theirs=is_admin, actor=actor).allowed:
        raise _unknown()
    if roles.get(ROOT) is GroupRole.ADMIN:
        return person, memberships, True
    return person, tuple(one for one in memberships if roles.get(one.group_id) is GroupRole.ADMIN), False


def _unfounded() -> NotFound:
    return NotFound("The directory has not been founded. Run found_directory.", code="directory_not_founded")


def _unknown() -> NotFound:
    return NotFound("Nobody whom you may see has this address.", code="person_not_found")
