"""The beginning: the root, the portal's own groups, and the first person."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from datetime import datetime
from typing import TypeVar

from accessportal.audit import queries as audit_queries
from accessportal.audit.operations import told
from accessportal.audit.queries import end_of_chain
from accessportal.audit.states import Draft
from accessportal.directory.following import follow
from accessportal.directory.operations.groups import create_group
from accessportal.directory.operations.memberships import grant_membership, with_claim
from accessportal.directory.operations.people import create_person
from accessportal.directory.operations.rights import require_people_right
from accessportal.directory.operations.writing import about_membership, mirrored, settled, told_person
from accessportal.directory.policy.tree import path_ancestors
from accessportal.directory.policy.words import clean_email, clean_group_id, clean_name
from accessportal.directory.states import (
    PERMANENT,
    ROOT,
    Changed,
    Claim,
    Group,
    GroupRole,
    Person,
    PersonVerb,
    State,
    group_entity,
    person_entity,
)
from accessportal.directory.store.accounts import get_kept_identity
from accessportal.directory.store.groups import insert_root, place_groups
from accessportal.directory.store.people import MembershipChange, PersonChange
from accessportal.directory.store.reading import every_group, every_member, get_group, get_person, list_placeless
from accessportal.kernel.actors import Actor, fold_email
from accessportal.kernel.errors import Conflict
from accessportal.store.transactions import Insert

T = TypeVar("T")
# Such a group that becomes a child of the root takes three items of a transaction, another one takes one.
_TOPS_AT_ONCE = 29
_OTHERS_AT_ONCE = 90


def found_directory(
    *, admin_email: str, admin_name: str, operator_group: str, auditor_group: str, actor: Actor, now: datetime
) -> Changed[Group]:
    """Make the root with a first admin, who then admits everybody else, the portal's own two groups, and the first operator if there never
    was one. It may be repeated: what exists stays, and groups that do not say where they stand are taken in by their paths."""
    address, name = clean_email(admin_email), clean_name(admin_name)
    key = fold_email(address)
    require_people_right(PersonVerb.CREATE, actor=actor, now=now)

    def attempt() -> Group:
        root = get_group(ROOT)
        if root is None:
            return _found(_admin(key, address, name, now), actor=actor, now=now)
        if root.standing_admins and key not in root.standing_admins:
            raise Conflict(f"The directory was founded already; {ROOT} has another admin.", code="directory_founded", present=root)
        return root

    root = settled(attempt)
    if key not in root.standing_admins:
        _make_admin(key, address, name, actor=actor, now=now)
    _take_in_groups(actor=actor, now=now)
    for group_id in (operator_group, auditor_group):
        _ensure_group(group_id, actor=actor, now=now)
    operators = get_group(operator_group) if operator_group else None
    if operators is not None and operators.is_enabled and not operators.member_count and not _was_in(operator_group, key):
        grant_membership(email=address, group_id=operator_group, role=GroupRole.READER, actor=actor, now=now)
    follow(entity=person_entity(key), now=now)
    return mirrored(get_group(ROOT) or root, entity=group_entity(ROOT), now=now)


def _admin(key: str, address: str, name: str, now: datetime) -> tuple[Person, bool]:
    """The person as they are, or as they are to be made, and whether they are new."""
    present = get_person(key)
    if present is None:
        sequence, head = end_of_chain(person_entity(key))
        kept = get_kept_identity(key)
        return Person(key, address, name, State.ENABLED, created_at=now, version=sequence, audit_head=head, identity=kept), True
    if not present.is_enabled:
        raise Conflict(f"{present.email} is disabled. Choose somebody else.", code="person_disabled", present=present)
    return present, False


def _found(admin: tuple[Person, bool], *, actor: Actor, now: datetime) -> Group:
    person, is_new = admin
    claim = Claim(PERMANENT, GroupRole.ADMIN, given_at=now, given_by=actor.name)
    membership = with_claim(None, claim, person=person.key, group_id=ROOT)
    drafts = (
        [Draft("user.created", person.key, {"email": person.email, "name": person.name, "state": person.state.value})] if is_new else []
    )
    drafts.append(about_membership("user.granted", claim, membership, of=membership, now=now))
    changed, person_events = told_person(person, drafts, actor=actor, now=now)
    sequence, head = end_of_chain(group_entity(ROOT))
    wanted = Group(
        ROOT,
        "All groups",
        "",
        State.ENABLED,
        member_count=1,
        admins=frozenset({person.key}),
        standing_admins=frozenset({person.key}),
        created_at=now,
        version=sequence,
        audit_head=head,
    )
    data = {"group_id": ROOT, "parent_id": "", "name": wanted.name, "description": "", "state": wanted.state.value}
    root, event = told(wanted, Draft("group.created", ROOT, data), actor=actor, now=now)
    change = PersonChange(None if is_new else person, changed, [MembershipChange(None, membership)])
    groups = 1 + sum(1 for group in every_group() if not group.is_root)
    insert_root(root, groups=groups, admin=change, by=actor.name, at=now, events=[event, *person_events])
    return root


def _make_admin(key: str, address: str, name: str, *, actor: Actor, now: datetime) -> None:
    if get_person(key) is None:
        create_person(email=address, name=name, group_id=ROOT, role=GroupRole.ADMIN, actor=actor, now=now)
    else:
        grant_membership(email=address, group_id=ROOT, role=GroupRole.ADMIN, actor=actor, now=now)


def _take_in_groups(*, actor: Actor, now: datetime) -> None:
    """Write down where groups stand that do not say so; those at the top of their paths come right below the root. What stands already is
    not touched, so a founding that was cut off goes on."""

    def attempt() -> None:
        placeless = list_placeless()
        for some in _parts([group for group in placeless if group.parent_id == ROOT], _TOPS_AT_ONCE):
            place_groups([_told_place(group, actor, now) for group in some], (), by=actor.name, at=now)
        for some in _parts([group for group in placeless if group.parent_id != ROOT], _OTHERS_AT_ONCE):
            place_groups((), [_with_admins(group) for group in some], by=actor.name, at=now)

    settled(attempt)


def _told_place(group: Group, actor: Actor, now: datetime) -> tuple[Group, Insert]:
    data = {"group_id": group.group_id, "old_parent_id": "", "parent_id": ROOT, "groups_moved": 1}
    return told(_with_admins(group), Draft("group.moved", group.group_id, data), actor=actor, now=now)


def _with_admins(group: Group) -> Group:
    """Whoever wrote such a group did not write them down there."""
    return replace(group, admins=frozenset(one.person for one in every_member(group.group_id) if one.has_admin_claim))


def _ensure_group(group_id: str, *, actor: Actor, now: datetime) -> None:
    """The group (empty: none is wanted) exists, with whatever was missing above it."""
    if not group_id or group_id == ROOT or get_group(group_id) is not None:
        return
    _ensure_group(path_ancestors(clean_group_id(group_id))[-1], actor=actor, now=now)
    name = group_id.rpartition("/")[2].capitalize()
    create_group(group_id=group_id, name=name, description="", actor=actor, now=now)


def _was_in(group_id: str, key: str) -> bool:
    """Whether the person ever was in the group: what was taken away does not come back with a repetition."""
    return any(event.scope == group_id for event in audit_queries.chain_of(person_entity(key)))


def _parts(items: Sequence[T], length: int) -> Iterator[Sequence[T]]:
    for start in range(0, len(items), length):
        yield items[start : start + length]
