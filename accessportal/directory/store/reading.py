"""People, groups and memberships out of the table, as records."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import partial
from typing import TypeVar

from accessportal.directory import models
from accessportal.directory.models import DirectoryItem, Key
from accessportal.directory.states import Group, Membership, Person
from accessportal.directory.store.conversion import to_group, to_membership, to_person
from accessportal.kernel.pages import Page, Unreadable
from accessportal.store.cursors import read_cursor, sign_cursor
from accessportal.store.listing import Listing
from accessportal.store.reading import Sift, read_as, read_item, read_items

R = TypeVar("R")
Past = Callable[[Unreadable], object]
_list = partial(Listing, model=DirectoryItem, index=DirectoryItem.kind_index)
_people = _list("directory.people", record=to_person)
_groups = _list("directory.groups", record=to_group)
_placeless = _list("directory.placeless", record=lambda item: to_group(item) if item.ancestors is None else None)
_branches = _list("directory.branches", record=models.group_in)
_members = _list("directory.members", record=to_membership)
_candidates = _list("directory.candidates", record=models.person_in)
_partition = Listing("directory.partition", DirectoryItem, lambda item: item, consistent=True)


def get_person(key: str) -> Person | None:
    """Strongly read."""
    return find(models.person_key(key), to_person)


def get_group(group_id: str) -> Group | None:
    """Strongly read."""
    return find(models.group_key(group_id), to_group)


def get_membership(key: str, group_id: str) -> Membership | None:
    """Strongly read."""
    return find(models.membership_key(key, group_id), to_membership)


def count_groups() -> int | None:
    """How many groups there are, strongly read; ``None`` before the directory was founded."""
    return find(models.counter_key(), lambda item: int(item.group_count))


def get_person_with_memberships(key: str) -> tuple[Person | None, tuple[Membership, ...]]:
    """A person and every membership, strongly read: one request for up to some thousand memberships."""
    person: Person | None = None
    memberships: list[Membership] = []
    for item in _partition.every(models.person_pk(key)):
        if item.sk == item.pk:
            person = read_as(to_person, item)
        else:
            memberships.append(read_as(to_membership, item))
    return person, tuple(memberships)


def list_branches(group_id: str) -> tuple[str, ...]:
    """The ids right below a group, strongly read."""
    items = _partition.every(models.group_pk(group_id))
    return tuple(models.group_in(item) for item in items if item.sk != item.pk)


def get_people(keys: Iterable[str], *, past: Past | None = None) -> tuple[Person, ...]:
    """Those of ``keys`` that exist, strongly read, in the order of their keys; ``past`` as in :func:`every`."""
    return tuple(get_many((models.person_key(key) for key in keys), to_person, past=past))


def get_groups(group_ids: Iterable[str], *, past: Past | None = None) -> dict[str, Group]:
    """Those of ``group_ids`` that exist, strongly read, by path; ``past`` as in :func:`every`."""
    return {group.group_id: group for group in get_many((models.group_key(group_id) for group_id in group_ids), to_group, past=past)}


def get_memberships_and_people(
    pairs: Iterable[tuple[str, str]], keys: Iterable[str], *, past: Past | None = None
) -> tuple[dict[tuple[str, str], Membership], dict[str, Person]]:
    """Those of the memberships (person, group) and of the people that exist, strongly read together; ``past`` as in :func:`every`."""
    wanted = [*(models.membership_key(person, group_id) for person, group_id in pairs), *map(models.person_key, keys)]
    found = get_many(wanted, lambda item: to_person(item) if item.sk == item.pk else to_membership(item), past=past)
    memberships = {(one.person, one.group_id): one for one in found if isinstance(one, Membership)}
    return memberships, {one.key: one for one in found if isinstance(one, Person)}


def page_of_people(*, prefix: str, cursor: str | None, limit: int, sift: Sift[Person] | None = None) -> Page[Person]:
    """People whose folded address starts with ``prefix``, in order of address; ``sift`` as in ``query_page``. An index read: it may lag."""
    where = DirectoryItem.pk.startswith(models.person_pk(prefix))
    return _people(models.PEOPLE, cursor=cursor, limit=limit, where=where, bound=prefix, sift=sift)


def page_of_groups(*, cursor: str | None, limit: int) -> Page[Group]:
    """Every group, in order of path. An index read: it may lag."""
    return _groups(models.GROUPS, cursor=cursor, limit=limit)


def every_group(*, past: Past | None = None) -> Iterable[Group]:
    """All pages of :func:`page_of_groups`."""
    return _groups.every(models.GROUPS, past=past)


def list_placeless() -> list[Group]:
    """The groups whose items do not say where they stand, in order of path; their ``ancestors`` come from the path. Candidates
    from the index: it may lag."""
    return [group for group in _placeless.every(models.GROUPS) if group is not None]


def page_of_groups_below(group_id: str, *, cursor: str | None, limit: int) -> Page[Group]:
    """Groups below ``group_id`` at any depth, in order of path. It reads every group from the index (there are 3,333 at
    most), because no key tells where a group stands; it may lag."""
    pattern = f"directory.groups_below:{group_id}"
    start = read_cursor(pattern, cursor)
    after = start["after"] if start else ""
    unreadable: list[Unreadable] = []
    everything = every_group(past=unreadable.append)
    below = [group for group in everything if group_id in group.ancestors and group.group_id > after]
    next_cursor = sign_cursor(pattern, {"after": below[limit - 1].group_id} if len(below) > limit else None)
    # Whether they are below is what can't be read.
    return Page(tuple(below[:limit]), next_cursor, tuple(unreadable))


def list_children(group_id: str, *, past: Past | None = None) -> tuple[Group, ...]:
    """The groups right below, by the seed's two steps: the index of the tree (it may lag), then the groups, strongly."""
    branches = _branches.every(models.HIERARCHY, where=DirectoryItem.pk == models.group_pk(group_id))
    return tuple(get_groups(branches, past=past).values())


def page_of_members(group_id: str, *, cursor: str | None, limit: int) -> Page[Membership]:
    """The direct memberships of one group, in order of address. An index read: it may lag."""
    return _members(models.members_of(group_id), cursor=cursor, limit=limit)


def every_member(group_id: str) -> Iterable[Membership]:
    """All pages of :func:`page_of_members`."""
    return _members.every(models.members_of(group_id))


def list_candidates(group_id: str) -> tuple[str, ...]:
    """Whoever may be directly in a group, whatever their items say. An index read: it may lag."""
    return tuple(_candidates.every(models.members_of(group_id)))


def find(key: Key, convert: Callable[[DirectoryItem], R]) -> R | None:
    """Return the item with this key as a record, strongly read. :raises Unavailable: also for an item that can't be read; it is named."""
    return read_item(DirectoryItem, convert, *key)


def get_many(keys: Iterable[Key], convert: Callable[[DirectoryItem], R], *, past: Past | None = None) -> list[R]:
    """Return those that exist as records, in key order; as :func:`~accessportal.store.reading.read_items`."""
    return list(read_items(DirectoryItem, convert, keys, past=past).values())
