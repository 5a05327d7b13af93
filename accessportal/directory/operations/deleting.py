"""Deleting a person, with every membership. What does not fit into one transaction is finished by whoever comes next."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime

from accessportal.audit.states import Draft
from accessportal.directory.operations.finding import held_by
from accessportal.directory.operations.last_root_admin import is_standing_admin, require_another_root_admin
from accessportal.directory.operations.memberships import about_deletion
from accessportal.directory.operations.rights import require_people_right
from accessportal.directory.operations.writing import about_membership, ask_to_look, mirrored, settled, told_person
from accessportal.directory.states import PERSON_DELETED, Changed, Membership, Person, PersonVerb, State
from accessportal.directory.store.people import MembershipChange, PersonChange, write_person
from accessportal.directory.store.reading import get_groups, get_person_with_memberships
from accessportal.kernel.actors import Actor, system

# Each takes three of a transaction's 100 items: the membership, its group, its event.
MOST_AT_ONCE = 30


def delete_person(*, email: str, actor: Actor, now: datetime) -> Changed[Person]:
    """Delete a person and all their memberships; their chain of events stays. With more than 30 memberships the person is disabled and
    marked first, and the rest follows in parts: after a crash the next deletion or the sweep goes on."""

    def attempt() -> Person:
        require_people_right(PersonVerb.DELETE, actor=actor, now=now)
        person, memberships = held_by(email)
        standing = is_standing_admin(person, memberships)
        if standing:
            require_another_root_admin(person)
        if len(memberships) <= MOST_AT_ONCE:
            _remove(person, memberships, is_last=True, is_standing=standing, actor=actor, now=now)
        elif not person.is_deleting:
            _begin(person, is_standing=standing, actor=actor, now=now)
        return person

    person = settled(attempt)
    ask_to_look()
    _finish(person.key, actor=actor, now=now)
    return mirrored(person, entity=person.entity, now=now)


def continue_deleting(*, key: str, now: datetime) -> None:
    """The person is gone if their deletion was begun; anybody else is left alone."""
    _finish(key, actor=system("directory"), now=now)


def _finish(key: str, *, actor: Actor, now: datetime) -> None:
    def attempt() -> bool:
        person, memberships = get_person_with_memberships(key)
        if person is None or not person.is_deleting:
            return False
        is_last = len(memberships) <= MOST_AT_ONCE
        _remove(person, memberships[:MOST_AT_ONCE], is_last=is_last, is_standing=False, actor=actor, now=now)
        return not is_last

    while settled(attempt):
        pass


def _begin(person: Person, *, is_standing: bool, actor: Actor, now: datetime) -> None:
    wanted = replace(person, state=State.DISABLED, is_deleting=True)
    changed, events = told_person(wanted, [Draft("user.disabled", person.key, {"state": State.DISABLED.value})], actor=actor, now=now)
    write_person(PersonChange(person, changed, standing=False if is_standing else None), events=events, by=actor.name, at=now)


def _remove(person: Person, memberships: Sequence[Membership], *, is_last: bool, is_standing: bool, actor: Actor, now: datetime) -> None:
    drafts = [_about(one, now) for one in memberships]
    if is_last:
        drafts.append(about_deletion(person, reason="deleted by an admin"))
    changed, events = told_person(person, drafts, actor=actor, now=now)
    groups = get_groups(one.group_id for one in memberships)
    gone = [MembershipChange(one, None, group_exists=one.group_id in groups) for one in memberships]
    change = PersonChange(person, None if is_last else changed, gone, standing=False if is_standing else None)
    write_person(change, events=events, by=actor.name, at=now)


def _about(membership: Membership, now: datetime) -> Draft:
    strongest = max(membership.claims, key=lambda claim: claim.role.rank)
    return about_membership("user.revoked", strongest, None, of=membership, now=now, reason=PERSON_DELETED)
