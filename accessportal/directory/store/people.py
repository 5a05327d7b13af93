"""Changes of people and their memberships. All of one person's changes condition on the person's version."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import datetime

from pynamodb.expressions.condition import Condition, size
from pynamodb.expressions.update import Action

from accessportal.audit.queries import nameless
from accessportal.directory import models
from accessportal.directory.models import DirectoryItem
from accessportal.directory.states import ROOT, Membership, Person, State
from accessportal.directory.store.accounts import keep_step
from accessportal.directory.store.conversion import claims_value, iso, role_value
from accessportal.directory.store.departures import departure_step
from accessportal.directory.store.following import deletion_step, work_step
from accessportal.store.erasures import not_under_way
from accessportal.store.transactions import Change, Guard, Insert, Remove, Step, transact

MOST_ADMINS = 200


@dataclass(frozen=True, slots=True)
class MembershipChange:
    """A membership as it was and as it shall be. ``is_grant``: somebody gets something, so the group must be enabled. ``group_exists`` is
    false where another program deleted the group and left its members."""

    before: Membership | None
    after: Membership | None
    is_grant: bool = False
    group_exists: bool = True

    @property
    def either(self) -> Membership:
        one = self.after or self.before
        assert one is not None
        return one


@dataclass(frozen=True, slots=True)
class PersonChange:
    """A person as they were and as they shall be (``None``: not there), with every membership that changes. ``standing``: whether they
    become or stop being an admin of the root, which must never be without one."""

    before: Person | None
    after: Person | None
    memberships: Sequence[MembershipChange] = ()
    standing: bool | None = None

    @property
    def key(self) -> str:
        one = self.after or self.before
        assert one is not None
        return one.key

    @property
    def loses(self) -> bool:
        """Whether the person may lose by it what others gave them for being there, enabled, and in their groups."""
        if self.after is None or any(not one.is_grant for one in self.memberships):
            return True
        return self.before is not None and self.before.is_enabled and not self.after.is_enabled

    @property
    def is_in_parts(self) -> bool:
        """Whether it is one of several that delete the person."""
        one = self.after or self.before
        return one is not None and one.is_deleting


@dataclass(slots=True)
class _Touch:
    """Everything one transaction does to one group: DynamoDB takes each item once."""

    condition: Condition
    actions: list[Action] = field(default_factory=list)


def write_person(
    change: PersonChange,
    *,
    events: Sequence[Insert],
    further: Sequence[Step] = (),
    is_mirrored: bool = True,
    by: str,
    at: datetime,
) -> None:
    """Write the change, its events, its mirror work, its departure and the caller's ``further`` steps, all or nothing. :raises
    ConditionFailed: when a guard does not hold, or the directory is not as the caller read it."""
    steps: list[Step] = [*further, *person_steps(change, by=by, at=at), *_group_steps(change), *events]
    item_pk, is_gone = models.person_pk(change.key), change.after is None
    if change.loses:
        steps.append(departure_step(item_pk=item_pk, now=at))
    if change.is_in_parts:
        steps += deletion_step(item_pk=item_pk, now=at, is_over=is_gone)
    elif is_mirrored:
        steps += work_step(item_pk=item_pk, now=at, forgets=is_gone)
    transact(steps)


def person_steps(change: PersonChange, *, by: str, at: datetime) -> list[Step]:
    """The steps on the person's own partition: the person and the memberships. Whoever goes leaves their account with the
    address: nobody else comes in there when somebody makes them anew."""
    steps = [_person_step(change, by=by, at=at), *(_membership_step(one, now=at) for one in change.memberships)]
    if change.after is None and change.before is not None and change.before.identity:
        steps.append(keep_step(change.before.identity, change.key))
    if change.before is None and (pseudonym := nameless(change.key)) != change.key:
        steps.append(not_under_way(pseudonym))
    return steps


def is_version(version: int) -> Condition:
    """The item is as it was read. Other programs' items have no version: they are at 0."""
    written = DirectoryItem.version == version
    return written if version else written | DirectoryItem.version.does_not_exist()


def _person_item(person: Person, *, by: str) -> DirectoryItem:
    at = iso(person.created_at)
    pk, sk = models.person_key(person.key)
    return DirectoryItem(
        pk,
        sk,
        si_key1=models.PEOPLE,
        email=person.email,
        display_name=person.name,
        state=person.state.value,
        created_at=at,
        created_by=by,
        updated_at=at,
        updated_by=by,
        version=person.version,
        audit_head=person.audit_head,
        outlasts_groups=person.outlasts_groups or None,
        identity=person.identity or None,
    )


def _membership_item(membership: Membership, *, now: datetime) -> DirectoryItem:
    pk, sk = models.membership_key(membership.person, membership.group_id)
    return DirectoryItem(
        pk,
        sk,
        si_key1=models.members_of(membership.group_id),
        role=role_value(membership, now=now),
        claims=claims_value(membership.claims),
        created_at=iso(membership.created_at),
        created_by=membership.created_by,
    )


def _person_step(change: PersonChange, *, by: str, at: datetime) -> Step:
    before, after = change.before, change.after
    if before is None:
        assert after is not None
        return Insert(_person_item(after, by=by))
    pk, sk = models.person_key(change.key)
    is_as_read = is_version(before.version)
    if after is None:
        return Remove(DirectoryItem, pk, is_as_read, sk)
    actions = [DirectoryItem.version.set(after.version), DirectoryItem.audit_head.set(after.audit_head)]
    if (before.state, before.name, before.is_deleting) != (after.state, after.name, after.is_deleting):
        actions += [
            DirectoryItem.state.set(after.state.value),
            DirectoryItem.display_name.set(after.name),
            DirectoryItem.updated_at.set(iso(at)),
            DirectoryItem.updated_by.set(by),
        ]
    if after.outlasts_groups and not before.outlasts_groups:
        actions.append(DirectoryItem.outlasts_groups.set(True))
    if after.is_deleting:
        actions.append(DirectoryItem.deleting.set(True))
    if after.signed_in_at and after.signed_in_at != before.signed_in_at:
        actions.append(DirectoryItem.signed_in_at.set(iso(after.signed_in_at)))
    if after.identity != before.identity:
        actions.append(DirectoryItem.identity.set(after.identity) if after.identity else DirectoryItem.identity.remove())
    return Change(DirectoryItem, pk, actions, is_as_read, sk)


def _membership_step(change: MembershipChange, *, now: datetime) -> Step:
    if change.before is None:
        assert change.after is not None
        return Insert(_membership_item(change.after, now=now))
    pk, sk = models.membership_key(change.before.person, change.before.group_id)
    if change.after is None:
        return Remove(DirectoryItem, pk, DirectoryItem.role.exists(), sk)
    actions = [DirectoryItem.role.set(role_value(change.after, now=now)), DirectoryItem.claims.set(claims_value(change.after.claims))]
    return Change(DirectoryItem, pk, actions, DirectoryItem.role.exists(), sk)


def _group_steps(change: PersonChange) -> list[Step]:
    touches: dict[str, _Touch] = {}
    for one in change.memberships:
        if one.group_exists:
            touches[one.either.group_id] = _touch(change.key, one)
    if change.standing is not None:
        touch = touches.setdefault(ROOT, _Touch(DirectoryItem.state.exists()))
        standing = DirectoryItem.standing_admins
        if change.standing:
            touch.actions.append(standing.add({change.key}))
        else:
            touch.actions.append(standing.delete({change.key}))
            touch.condition &= ~standing.contains(change.key) | (size(standing) > 1)
    return [_group_step(group_id, touch) for group_id, touch in touches.items()]


def _touch(key: str, change: MembershipChange) -> _Touch:
    touch = _Touch(DirectoryItem.state == State.ENABLED.value if change.is_grant else DirectoryItem.state.exists())
    if (change.before is None) != (change.after is None):
        touch.actions.append(DirectoryItem.member_count.add(1 if change.before is None else -1))
    was_admin = change.before is not None and change.before.has_admin_claim
    is_admin = change.after is not None and change.after.has_admin_claim
    admins = DirectoryItem.admins
    if is_admin and not was_admin:
        touch.actions.append(admins.add({key}))
        touch.condition &= admins.does_not_exist() | (size(admins) < MOST_ADMINS)
    elif was_admin and not is_admin:
        touch.actions.append(admins.delete({key}))
    return touch


def _group_step(group_id: str, touch: _Touch) -> Step:
    pk, sk = models.group_key(group_id)
    if touch.actions:
        return Change(DirectoryItem, pk, touch.actions, touch.condition, sk)
    return Guard(DirectoryItem, pk, touch.condition, sk)
