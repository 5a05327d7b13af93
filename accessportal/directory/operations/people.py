"""Making people, and their state and name."""

from __future__ import annotations

from dataclasses import replace
from datetime import datetime

from accessportal.audit.queries import end_of_chain
from accessportal.audit.states import Draft
from accessportal.directory.operations.accounts import taken_for
from accessportal.directory.operations.finding import held_by, require_not_deleting
from accessportal.directory.operations.last_root_admin import is_standing_admin, require_another_root_admin
from accessportal.directory.operations.memberships import first_membership
from accessportal.directory.operations.rights import require_people_right
from accessportal.directory.operations.writing import ask_to_look, mirrored, settled, told_person
from accessportal.directory.policy.words import clean_email, clean_name
from accessportal.directory.states import Changed, GroupRole, Person, PersonVerb, State, person_entity
from accessportal.directory.store.accounts import get_kept_identity
from accessportal.directory.store.people import PersonChange, write_person
from accessportal.directory.store.reading import get_person_with_memberships
from accessportal.kernel.actors import Actor, fold_email
from accessportal.kernel.errors import Conflict, InvalidRequest


def create_person(
    *, email: str, name: str, group_id: str | None = None, role: GroupRole | None = None, actor: Actor, now: datetime
) -> Changed[Person]:
    """Create an enabled person, with ``role`` in ``group_id`` from the first moment on, or in no group: then they stay when they leave
    their last one. Who was deleted goes on with their chain of events and the account that the address keeps."""
    address, new_name = clean_email(email), clean_name(name)
    if (group_id is None) != (role is None):
        raise InvalidRequest(
            "Give a group with a role, or neither.", code="group_without_role", field="role" if role is None else "group_id"
        )
    key = fold_email(address)

    def attempt() -> Person:
        if group_id is None or role is None:
            require_people_right(PersonVerb.CREATE, actor=actor, now=now)
        first = first_membership(key, group_id, role, actor=actor, now=now) if group_id and role else None
        present, memberships = get_person_with_memberships(key)
        if present is not None:
            raise Conflict(f"{address} is in the directory already.", code="person_exists", present=present)
        if memberships:
            raise Conflict(
                f"{address} was deleted by another program, which left memberships behind. Remove these items of the table first.",
                code="memberships_left_behind",
            )
        sequence, head = end_of_chain(person_entity(key))
        drafts = [Draft("user.created", key, {"email": address, "name": new_name, "state": State.ENABLED.value})]
        drafts += [first.draft] if first else []
        wanted = Person(
            key,
            address,
            new_name,
            State.ENABLED,
            created_at=now,
            version=sequence,
            audit_head=head,
            identity=get_kept_identity(key),
            outlasts_groups=first is None,
        )
        person, events = told_person(wanted, drafts, actor=actor, now=now)
        change = PersonChange(
            None, person, [first.change] if first else [], standing=True if first and first.makes_standing_admin else None
        )
        write_person(change, events=events, further=taken_for(wanted), by=actor.name, at=now)
        return person

    return mirrored(settled(attempt), entity=person_entity(key), now=now)


def set_person_state(*, email: str, state: State, actor: Actor, now: datetime) -> Changed[Person]:
    """Enable or disable the person, for admins of the root. A disabled person is in no group and may decide nothing."""

    def attempt() -> Person:
        require_people_right(PersonVerb.ENABLE if state is State.ENABLED else PersonVerb.DISABLE, actor=actor, now=now)
        person, memberships = held_by(email)
        require_not_deleting(person)
        if person.state is state:
            raise Conflict(f"{person.email} is {state.value} already.", code="person_state_unchanged", present=person)
        wanted = replace(person, state=state)
        standing = None
        if is_standing_admin(replace(person, state=State.ENABLED), memberships):
            standing = state is State.ENABLED
        if standing is False:
            require_another_root_admin(person)
        changed, events = told_person(wanted, [Draft(f"user.{state.value}", person.key, {"state": state.value})], actor=actor, now=now)
        accounts = taken_for(wanted) if state is State.ENABLED else []
        change = PersonChange(person, changed, standing=standing)
        write_person(change, events=events, further=accounts, by=actor.name, at=now)
        return changed

    person = settled(attempt)
    if not person.is_enabled:
        ask_to_look()
    return mirrored(person, entity=person.entity, now=now)


def rename_person(*, email: str, name: str, actor: Actor, now: datetime) -> Changed[Person]:
    """Give the person a name. The address, which everything refers to, stays for life."""
    clean = clean_name(name)

    def attempt() -> Person:
        require_people_right(PersonVerb.RENAME, actor=actor, now=now)
        person, _ = held_by(email)
        require_not_deleting(person)
        if person.name == clean:
            raise Conflict(f"{person.email} has this name already.", code="person_unchanged", present=person)
        draft = Draft("user.renamed", person.key, {"name": clean, "old_name": person.name})
        changed, events = told_person(replace(person, name=clean), [draft], actor=actor, now=now)
        write_person(PersonChange(person, changed), events=events, by=actor.name, at=now)
        return changed

    person = settled(attempt)
    return mirrored(person, entity=person.entity, now=now)
