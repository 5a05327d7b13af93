"""People, groups and memberships out of the table, as records."""

from __future__ import annotations

from collections.abc import Iterable

from pynamodb.exceptions import PynamoDBException

from accessportal.directory import models
from accessportal.directory.models import DirectoryItem, Key
from accessportal.directory.states import Group, Membership, Person
from accessportal.directory.store.conversion import to_group, to_membership, to_person
from accessportal.kernel.pages import Page, every
from accessportal.store.base import unavailable
from accessportal.store.cursors import read_cursor, sign_cursor
from accessportal.store.reading import get_item, query_page

_BIG_PAGE = 500


def get_person(key: str) -> Person | None:
    """Strongly read."""
    item = get_item(DirectoryItem, *models.person_key(key))
    return to_person(item) if item else None


def get_group(group_id: str) -> Group | None:
    """Strongly read."""
    item = get_item(DirectoryItem, *models.group_key(group_id))
    return to_group(item) if item else None


def get_membership(key: str, group_id: str) -> Membership | None:
    """Strongly read."""
    item = get_item(DirectoryItem, *models.membership_key(key, group_id))
    return to_membership(item) if item else None


def count_groups() -> int | None:
    """How many groups there are, strongly read; ``None`` before the directory was founded."""
    item = get_item(DirectoryItem, *models.counter_key())
    return int(item.group_count) if item else None


def get_person_with_memberships(key: str) -> tuple[Person | None, tuple[Membership, ...]]:
    """A person and every membership, strongly read: one request for up to some thousand memberships."""
    person: Person | None = None
    memberships: list[Membership] = []
    for item in _partition(models.person_pk(key), name=f"directory.person:{key}"):
        if item.sk == item.pk:
            person = to_person(item)
        else:
            memberships.append(to_membership(item))
    return person, tuple(memberships)


def list_branches(group_id: str) -> tuple[str, ...]:
    """The ids right below a group, strongly read."""
    items = _partition(models.group_pk(group_id), name=f"directory.group:{group_id}")
    return tuple(models.group_in(item) for item in items if item.sk != item.pk)


def get_people(keys: Iterable[str]) -> tuple[Person, ...]:
    """Those of ``keys`` that exist, strongly read, in the order of their keys."""
    return tuple(to_person(item) for item in get_many(models.person_key(key) for key in keys))


def get_groups(group_ids: Iterable[str]) -> dict[str, Group]:
    """Those of ``group_ids`` that exist, strongly read, by path."""
    groups = (to_group(item) for item in get_many(models.group_key(group_id) for group_id in group_ids))
    return {group.group_id: group for group in groups}


def get_memberships(pairs: Iterable[tuple[str, str]]) -> tuple[Membership, ...]:
    """Those of the memberships (person, group) that exist, strongly read."""
    return tuple(to_membership(item) for item in get_many(models.membership_key(person, group_id) for person, group_id in pairs))


def page_of_people(*, prefix: str, cursor: str | None, limit: int) -> Page[Person]:
    """People whose folded address starts with ``prefix``, in order of address. An index read: it may lag."""
    return query_page(
        DirectoryItem,
        models.PEOPLE,
        index=DirectoryItem.kind_index,
        pattern=f"directory.people:{prefix}",
        convert=to_person,
        cursor=cursor,
        limit=limit,
        range_condition=DirectoryItem.pk.startswith(models.person_pk(prefix)),
    )


def page_of_groups(*, cursor: str | None, limit: int) -> Page[Group]:
    """Every group, in order of path. An index read: it may lag."""
    return query_page(
        DirectoryItem,
        models.GROUPS,
        index=DirectoryItem.kind_index,
        pattern="directory.groups",
        convert=to_group,
        cursor=cursor,
        limit=limit,
    )


def every_group() -> Iterable[Group]:
    """All pages of :func:`page_of_groups`."""
    return every(lambda cursor: page_of_groups(cursor=cursor, limit=_BIG_PAGE))


def list_placeless() -> list[Group]:
    """The groups whose items do not say where they stand, in order of path; their ``ancestors`` come from the path. Candidates
    from the index: it may lag."""
    pages = every(
        lambda cursor: query_page(
            DirectoryItem,
            models.GROUPS,
            index=DirectoryItem.kind_index,
            pattern="directory.placeless",
            convert=lambda item: to_group(item) if item.ancestors is None else None,
            cursor=cursor,
            limit=_BIG_PAGE,
        )
    )
    return [group for group in pages if group is not None]


def page_of_groups_below(group_id: str, *, cursor: str | None, limit: int) -> Page[Group]:
    """Groups below ``group_id`` at any depth, in order of path. It reads every group from the index (there are 3,333 at
    most), because no key tells where a group stands; it may lag."""
    pattern = f"directory.groups_below:{group_id}"
    start = read_cursor(pattern, cursor)
    after = start["after"] if start else ""
    below = [group for group in every_group() if group_id in group.ancestors and group.group_id > after]
    has_more = len(below) > limit
    return Page(tuple(below[:limit]), sign_cursor(pattern, {"after": below[limit - 1].group_id} if has_more else None))


def list_children(group_id: str) -> tuple[Group, ...]:
    """The groups right below, by the seed's two steps: the index of the tree (it may lag), then the groups, strongly."""
    branches = every(
        lambda cursor: query_page(
            DirectoryItem,
            models.HIERARCHY,
            index=DirectoryItem.kind_index,
            pattern=f"directory.children:{group_id}",
            convert=models.group_in,
            cursor=cursor,
            limit=_BIG_PAGE,
            range_condition=DirectoryItem.pk == models.group_pk(group_id),
        )
    )
    return tuple(get_groups(branches).values())


def page_of_members(group_id: str, *, cursor: str | None, limit: int) -> Page[Membership]:
    """The direct memberships of one group, in order of address. An index read: it may lag."""
    return query_page(
        DirectoryItem,
        models.members_of(group_id),
        index=DirectoryItem.kind_index,
        pattern=f"directory.members:{group_id}",
        convert=to_membership,
        cursor=cursor,
        limit=limit,
    )


def every_member(group_id: str) -> Iterable[Membership]:
    """All pages of :func:`page_of_members`."""
    return every(lambda cursor: page_of_members(group_id, cursor=cursor, limit=_BIG_PAGE))


def _partition(pk: str, *, name: str) -> Iterable[DirectoryItem]:
    return every(
        lambda cursor: query_page(
            DirectoryItem, pk, pattern=name, convert=lambda item: item, cursor=cursor, limit=_BIG_PAGE, consistent=True
        )
    )


def get_many(keys: Iterable[Key]) -> list[DirectoryItem]:
    """The items that exist, strongly read, in key order; 100 to a request (a DynamoDB limit)."""
    wanted = set(keys)
    try:
        found = list(DirectoryItem.batch_get(wanted, consistent_read=True)) if wanted else []
    except PynamoDBException as error:
        raise unavailable(error) from error
    return sorted(found, key=lambda item: (item.pk, item.sk))
