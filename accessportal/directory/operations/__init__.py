"""Changing the directory: each function is one transaction with its event, decided on strong reads."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from datetime import datetime
from typing import TypeVar

from accessportal.audit import queries as audit_queries
from accessportal.audit.operations import prepare_event
from accessportal.audit.states import Draft
from accessportal.directory import policy, store
from accessportal.directory.states import PERMANENT, Claim, Group, GroupRole, Membership, Person, State, group_entity, person_entity
from accessportal.kernel.actors import Actor, fold_email
from accessportal.kernel.errors import Conflict, InvalidRequest, NotFound
from accessportal.store.transactions import ConditionFailed, Insert

R = TypeVar("R")
_ATTEMPTS = 5


def create_person(*, email: str, name: str, actor: Actor, now: datetime) -> Person:
    """A new, enabled person without groups exists.

    :raises InvalidRequest: for a bad ``email`` or ``name``.
    :raises NotAllowed: unless the actor is an operator or the portal itself.
    :raises Conflict: when the address, in any spelling of its letters, belongs to somebody already.
    """
    policy.may_manage(actor).require()
    address, clean_name = policy.clean_email(email), policy.clean_name(name)
    key = fold_email(address)
    draft = Draft("user.created", key, {"email": address, "name": clean_name, "state": State.ENABLED.value})
    event = prepare_event(draft, entity=person_entity(key), sequence=1, prev_hash="", actor=actor, now=now)
    person = Person(key=key, email=address, name=clean_name, state=State.ENABLED, created_at=now, version=1, audit_head=event.head)
    try:
        store.insert_person(person, by=actor.name, event=event.step)
    except ConditionFailed as failed:
        raise Conflict(f"{address} is in the directory already.", code="person_exists", present=store.get_person(key)) from failed
    return person


def set_person_state(*, email: str, state: State, actor: Actor, now: datetime) -> Person:
    """The person is enabled or disabled from now on; a disabled one is in no group and may decide nothing.

    :raises NotAllowed: unless the actor is an operator or the portal itself.
    :raises NotFound: when nobody has this address.
    :raises Conflict: when the person is in that state already.
    """
    policy.may_manage(actor).require()

    def attempt() -> Person:
        person = _person(email)
        if person.state is state:
            raise Conflict(f"{person.email} is {state.value} already.", code="person_state_unchanged", present=person)
        changed, step = _told(
            replace(person, state=state), Draft(f"user.{state.value}", person.key, {"state": state.value}), actor=actor, now=now
        )
        store.change_state(changed, by=actor.name, at=now, event=step)
        return changed

    return _settled(attempt)


def create_group(*, group_id: str, name: str, description: str, actor: Actor, now: datetime) -> Group:
    """A new, enabled, empty group exists below its parent (the leading part of its path).

    :raises InvalidRequest: for a bad path, name or description, or when the parent does not exist or is disabled.
    :raises NotAllowed: unless the actor is an operator or the portal itself.
    :raises Conflict: when the group exists already.
    """
    policy.may_manage(actor).require()
    policy.clean_group_id(group_id)
    wanted = Group(group_id, policy.clean_name(name), policy.clean_description(description), State.ENABLED)
    parent_id = policy.parent_of(group_id)

    def attempt() -> Group:
        present = store.get_groups([group_id, *([parent_id] if parent_id else [])])
        if group_id in present:
            raise Conflict(f"The group {group_id} exists already.", code="group_exists", present=present[group_id])
        if parent_id and (parent_id not in present or not present[parent_id].is_enabled):
            raise InvalidRequest(f"The group above, {parent_id}, does not exist. Create it first.", code="parent_missing", field="group_id")
        draft = Draft("group.created", group_id, {"group_id": group_id, "parent_id": parent_id or "", "name": wanted.name})
        sequence, prev_hash = _end_of_chain(group_entity(group_id))
        event = prepare_event(draft, entity=group_entity(group_id), sequence=sequence + 1, prev_hash=prev_hash, actor=actor, now=now)
        group = replace(wanted, version=sequence + 1, audit_head=event.head)
        store.insert_group(group, parent_id=parent_id, by=actor.name, at=now, event=event.step)
        return group

    return _settled(attempt)


def delete_group(*, group_id: str, actor: Actor, now: datetime) -> None:
    """The group is gone. Its chain of events stays, and a later group of the same path goes on with it.

    :raises NotAllowed: unless the actor is an operator or the portal itself.
    :raises NotFound: when there is no such group.
    :raises Conflict: while it has members or groups below.
    """
    policy.may_manage(actor).require()

    def attempt() -> None:
        group = _group(group_id)
        if group.member_count or group.child_count:
            raise Conflict(
                f"{group_id} has {group.member_count} members and {group.child_count} groups below. Remove them first.",
                code="group_not_empty",
                present=group,
            )
        draft = Draft("group.deleted", group_id, {"group_id": group_id, "name": group.name})
        event = prepare_event(draft, entity=group.entity, sequence=group.version + 1, prev_hash=group.audit_head, actor=actor, now=now)
        store.remove_group(group, parent_id=policy.parent_of(group_id), event=event.step)

    _settled(attempt)


def grant_membership(*, email: str, group_id: str, role: GroupRole, actor: Actor, now: datetime) -> Membership:
    """The person is in the group, with ``role``. Told in the person's chain of events.

    :raises NotAllowed: unless the actor is an operator or the portal itself.
    :raises NotFound: when the person or the group does not exist.
    :raises Conflict: when the person is in the group already, or the group is disabled.
    """
    policy.may_manage(actor).require()

    def attempt() -> Membership:
        person, group = _person(email), _group(group_id)
        if not group.is_enabled:
            raise Conflict(f"The group {group_id} is disabled.", code="group_disabled", present=group)
        present = store.get_membership(person.key, group_id)
        if present is not None:
            raise Conflict(
                f"{person.email} is in {group_id} already, as {present.claims[0].role.value}. Revoke that first to change the role.",
                code="membership_exists",
                present=present,
            )
        membership = Membership(person.key, group_id, (Claim(PERMANENT, role),), created_at=now, created_by=actor.name)
        changed, step = _told(person, _about("user.granted", membership), actor=actor, now=now)
        store.insert_membership(membership, changed, by=actor.name, at=now, event=step)
        return membership

    return _settled(attempt)


def revoke_membership(*, email: str, group_id: str, actor: Actor, now: datetime) -> None:
    """The person is no longer directly in the group. Told in the person's chain of events.

    :raises NotAllowed: unless the actor is an operator or the portal itself.
    :raises NotFound: when the person does not exist or is not directly in the group.
    """
    policy.may_manage(actor).require()

    def attempt() -> None:
        person = _person(email)
        membership = store.get_membership(person.key, policy.clean_group_id(group_id))
        if membership is None:
            raise NotFound(f"{person.email} is not directly in {group_id}.", code="membership_not_found")
        changed, step = _told(person, _about("user.revoked", membership), actor=actor, now=now)
        store.remove_membership(membership, changed, group_exists=store.get_group(group_id) is not None, event=step)

    _settled(attempt)


def _settled(attempt: Callable[[], R]) -> R:
    """The result of ``attempt``, which reads, decides and writes anew when another writer came between."""
    for _ in range(_ATTEMPTS):
        try:
            return attempt()
        except ConditionFailed:
            continue
    raise Conflict("Others keep changing the same person or group right now. Try again.", code="directory_contended")


def _told(person: Person, draft: Draft, *, actor: Actor, now: datetime) -> tuple[Person, Insert]:
    """``person`` at its next version, and the event that tells why."""
    event = prepare_event(draft, entity=person.entity, sequence=person.version + 1, prev_hash=person.audit_head, actor=actor, now=now)
    return replace(person, version=person.version + 1, audit_head=event.head), event.step


def _about(action: str, membership: Membership) -> Draft:
    data = {"email": membership.person, "group_id": membership.group_id, "role": membership.claims[0].role.value}
    return Draft(action, membership.person, data, scope=membership.group_id)


def _end_of_chain(entity: str) -> tuple[int, str]:
    """Sequence and hash of the last event of ``entity``: a deleted group's chain must not be started a second time."""
    newest = audit_queries.history(entity, limit=1).items
    return (newest[0].sequence, newest[0].hash) if newest else (0, "")


def _person(email: str) -> Person:
    key = policy.key_of(email)
    person = store.get_person(key) if key else None
    if person is None:
        raise NotFound("Nobody in the directory has this address.", code="person_not_found")
    return person


def _group(group_id: str) -> Group:
    group = store.get_group(group_id) if policy.is_group_id(group_id) else None
    if group is None:
        raise NotFound("There is no group with this path.", code="group_not_found")
    return group
