"""The only user of the AccessManagement item class: people, groups and memberships in and out, as records."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import UTC, datetime

from pynamodb.exceptions import PynamoDBException
from pynamodb.expressions.update import Action

from accessportal.directory import models
from accessportal.directory.models import DirectoryItem, Key
from accessportal.directory.states import PERMANENT, Claim, Group, GroupRole, Membership, Person, State
from accessportal.kernel.clock import from_epoch
from accessportal.kernel.pages import Page, every
from accessportal.store.base import unavailable
from accessportal.store.reading import get_item, query_page
from accessportal.store.transactions import Change, Insert, Remove, Step, transact

_BIG_PAGE = 500


# Reads


def get_person(key: str) -> Person | None:
    """Strongly read."""
    item = get_item(DirectoryItem, *models.person_key(key))
    return _person(item) if item else None


def get_group(group_id: str) -> Group | None:
    """Strongly read."""
    item = get_item(DirectoryItem, *models.group_key(group_id))
    return _group(item) if item else None


def get_membership(key: str, group_id: str) -> Membership | None:
    """Strongly read."""
    item = get_item(DirectoryItem, *models.membership_key(key, group_id))
    return _membership(item) if item else None


def get_person_with_memberships(key: str) -> tuple[Person | None, tuple[Membership, ...]]:
    """A person and every membership, strongly read: one request for up to some thousand memberships."""
    items = every(
        lambda cursor: query_page(
            DirectoryItem,
            models.person_pk(key),
            pattern=f"directory.person:{key}",
            convert=lambda item: item,
            cursor=cursor,
            limit=_BIG_PAGE,
            consistent=True,
        )
    )
    person: Person | None = None
    memberships: list[Membership] = []
    for item in items:
        if item.sk == item.pk:
            person = _person(item)
        else:
            memberships.append(_membership(item))
    return person, tuple(memberships)


def get_people(keys: Iterable[str]) -> tuple[Person, ...]:
    """Those of ``keys`` that exist, strongly read, in the order of their keys."""
    return tuple(_person(item) for item in _get_many(models.person_key(key) for key in keys))


def get_groups(group_ids: Iterable[str]) -> dict[str, Group]:
    """Those of ``group_ids`` that exist, strongly read, by path."""
    groups = (_group(item) for item in _get_many(models.group_key(group_id) for group_id in group_ids))
    return {group.group_id: group for group in groups}


def get_memberships(memberships: Iterable[Membership]) -> tuple[Membership, ...]:
    """Those of ``memberships`` (from an index) that really exist, strongly read."""
    return tuple(_membership(item) for item in _get_many(models.membership_key(one.person, one.group_id) for one in memberships))


def page_of_people(*, prefix: str, cursor: str | None, limit: int) -> Page[Person]:
    """People whose folded address starts with ``prefix``, in order of address. An index read: it may lag."""
    return query_page(
        DirectoryItem,
        models.PEOPLE,
        index=DirectoryItem.kind_index,
        pattern=f"directory.people:{prefix}",
        convert=_person,
        cursor=cursor,
        limit=limit,
        range_condition=DirectoryItem.pk.startswith(models.person_pk(prefix)),
    )


def page_of_groups(*, prefix: str, cursor: str | None, limit: int) -> Page[Group]:
    """Groups whose path starts with the characters ``prefix``, in order of path. An index read: it may lag."""
    return query_page(
        DirectoryItem,
        models.GROUPS,
        index=DirectoryItem.kind_index,
        pattern=f"directory.groups:{prefix}",
        convert=_group,
        cursor=cursor,
        limit=limit,
        range_condition=DirectoryItem.pk.startswith(models.group_pk(prefix)),
    )


def every_group(*, prefix: str) -> Iterable[Group]:
    """All pages of :func:`page_of_groups`."""
    return every(lambda cursor: page_of_groups(prefix=prefix, cursor=cursor, limit=_BIG_PAGE))


def page_of_members(group_id: str, *, cursor: str | None, limit: int) -> Page[Membership]:
    """The direct memberships of one group, in order of address. An index read: it may lag."""
    return query_page(
        DirectoryItem,
        models.members_of(group_id),
        index=DirectoryItem.kind_index,
        pattern=f"directory.members:{group_id}",
        convert=_membership,
        cursor=cursor,
        limit=limit,
    )


def every_member(group_id: str) -> Iterable[Membership]:
    """All pages of :func:`page_of_members`."""
    return every(lambda cursor: page_of_members(group_id, cursor=cursor, limit=_BIG_PAGE))


# Writes: each is one transaction with its event, and raises ConditionFailed when the directory is not as the caller read it.


def insert_person(person: Person, *, by: str, event: Insert) -> None:
    at = _iso(person.created_at)
    pk, sk = models.person_key(person.key)
    item = DirectoryItem(
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
    )
    transact([Insert(item), event])


def change_state(person: Person, *, by: str, at: datetime, event: Insert) -> None:
    """Give the person (already at the new version) its new state."""
    actions = [
        DirectoryItem.state.set(person.state.value),
        DirectoryItem.updated_at.set(_iso(at)),
        DirectoryItem.updated_by.set(by),
    ]
    transact([_next_version(person, *actions), event])


def insert_group(group: Group, *, parent_id: str | None, by: str, at: datetime, event: Insert) -> None:
    """Write the group, its branch in the tree and the parent's count (the seed's "Create a new group")."""
    moment = _iso(at)
    pk, sk = models.group_key(group.group_id)
    item = DirectoryItem(
        pk,
        sk,
        si_key1=models.GROUPS,
        id=group.group_id,
        name=group.name,
        description=group.description,
        state=group.state.value,
        created_at=moment,
        created_by=by,
        updated_at=moment,
        updated_by=by,
        member_count=group.member_count,
        child_count=group.child_count,
        version=group.version,
        audit_head=group.audit_head,
    )
    steps: list[Step] = [Insert(item), event]
    if parent_id is not None:
        branch_pk, branch_sk = models.branch_key(parent_id, group.group_id)
        steps += [
            Insert(DirectoryItem(branch_pk, branch_sk, si_key1=models.HIERARCHY, created_at=moment, created_by=by)),
            _count(parent_id, DirectoryItem.child_count.add(1), only_enabled=True),
        ]
    transact(steps)


def remove_group(group: Group, *, parent_id: str | None, event: Insert) -> None:
    """Delete the group, while it is empty, and its branch in the tree."""
    pk, sk = models.group_key(group.group_id)
    empty = (DirectoryItem.member_count == 0) & (DirectoryItem.child_count == 0) & (DirectoryItem.version == group.version)
    steps: list[Step] = [Remove(DirectoryItem, pk, empty, sk), event]
    if parent_id is not None:
        branch_pk, branch_sk = models.branch_key(parent_id, group.group_id)
        steps += [
            Remove(DirectoryItem, branch_pk, DirectoryItem.sk.exists(), branch_sk),
            _count(parent_id, DirectoryItem.child_count.add(-1), only_enabled=False),
        ]
    transact(steps)


def insert_membership(membership: Membership, person: Person, *, by: str, at: datetime, event: Insert) -> None:
    """Put the person (already at the new version) into the group, which must exist and be enabled."""
    pk, sk = models.membership_key(membership.person, membership.group_id)
    item = DirectoryItem(
        pk, sk, si_key1=models.members_of(membership.group_id), role=membership.claims[0].role.value, created_at=_iso(at), created_by=by
    )
    count = _count(membership.group_id, DirectoryItem.member_count.add(1), only_enabled=True)
    transact([_next_version(person), count, Insert(item), event])


def remove_membership(membership: Membership, person: Person, *, group_exists: bool, event: Insert) -> None:
    """Take the person (already at the new version) out of the group."""
    pk, sk = models.membership_key(membership.person, membership.group_id)
    steps: list[Step] = [_next_version(person), Remove(DirectoryItem, pk, DirectoryItem.role == membership.claims[0].role.value, sk), event]
    if group_exists:
        steps.append(_count(membership.group_id, DirectoryItem.member_count.add(-1), only_enabled=False))
    transact(steps)


def _next_version(person: Person, *actions: Action) -> Change:
    pk, sk = models.person_key(person.key)
    stamped = [DirectoryItem.version.set(person.version), DirectoryItem.audit_head.set(person.audit_head), *actions]
    return Change(DirectoryItem, pk, stamped, DirectoryItem.version == person.version - 1, sk)


def _count(group_id: str, action: Action, *, only_enabled: bool) -> Change:
    pk, sk = models.group_key(group_id)
    condition = DirectoryItem.state == State.ENABLED.value if only_enabled else DirectoryItem.state.exists()
    return Change(DirectoryItem, pk, [action], condition, sk)


# Conversion


def _get_many(keys: Iterable[Key]) -> list[DirectoryItem]:
    """The items that exist, strongly read, in key order; 100 to a request (a DynamoDB limit)."""
    wanted = set(keys)
    try:
        found = list(DirectoryItem.batch_get(wanted, consistent_read=True)) if wanted else []
    except PynamoDBException as error:
        raise unavailable(error) from error
    return sorted(found, key=lambda item: (item.pk, item.sk))


def _person(item: DirectoryItem) -> Person:
    key = models.person_in(item)
    email = item.email or key
    return Person(
        key=key,
        email=email,
        name=item.display_name or email,
        state=State(item.state),
        created_at=_moment(item.created_at),
        version=int(item.version or 0),
        audit_head=item.audit_head or "",
    )


def _group(item: DirectoryItem) -> Group:
    group_id = models.group_in(item)
    return Group(
        group_id=group_id,
        name=item.name or group_id,
        description=item.description or "",
        state=State(item.state),
        member_count=int(item.member_count or 0),
        child_count=int(item.child_count or 0),
        version=int(item.version or 0),
        audit_head=item.audit_head or "",
    )


def _membership(item: DirectoryItem) -> Membership:
    return Membership(
        person=models.person_in(item),
        group_id=models.group_in(item),
        claims=(Claim(PERMANENT, GroupRole(item.role)),),
        created_at=_moment(item.created_at) if item.created_at else from_epoch(0),
        created_by=item.created_by or "",
    )


def _iso(moment: datetime) -> str:
    """The seed's form of a time: ``2022-08-10T23:55:20.322Z``."""
    return moment.astimezone(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")


def _moment(text: str) -> datetime:
    return datetime.fromisoformat(text).astimezone(UTC)
