"""Which groups and roles somebody has: strongly read, judged at the moment that is passed in. ``book``: what has been read already."""

from __future__ import annotations

from collections.abc import Collection
from datetime import datetime

from accessportal.directory.policy.tree import counted_groups, effective_roles, path_ancestors, right_at
from accessportal.directory.queries.book import Book
from accessportal.directory.states import EffectiveRole, GroupRole, Membership, Person


def groups_of(*, email: str, now: datetime, book: Book | None = None) -> frozenset[str]:
    """Return the ids of the groups that a person is in at ``now``, every group above included; none for unknown or disabled people. Only
    enabled groups count, and memberships of which a claim does."""
    return find_person_with_groups(email=email, now=now, book=book)[1]


def find_person_with_groups(
    *, email: str, without: Collection[str] = (), now: datetime, book: Book | None = None
) -> tuple[Person | None, frozenset[str], frozenset[str]]:
    """Find a person, the groups that they are in, and those that they are directly in, of one moment: two strong requests for up to a
    hundred groups, one more when a group of theirs was moved. ``without``: claims that don't count."""
    book = book or Book()
    person, memberships = book.held_by(email)
    if person is None or not person.is_enabled:
        return person, frozenset(), frozenset()
    if without:
        memberships = tuple(one.without(without) for one in memberships)
    groups = frozenset(groups_through(memberships, now=now, book=book))
    return person, groups, groups & {one.group_id for one in memberships if one.role_at(now)}


def find_person_with_ends(*, email: str, now: datetime, book: Book | None = None) -> tuple[Person | None, dict[str, datetime | None]]:
    """As :func:`find_person_with_groups`, with when they stop being in each group (``None``: never)."""
    book = book or Book()
    person, memberships = book.held_by(email)
    if person is None or not person.is_enabled:
        return person, {}
    return person, groups_through(memberships, now=now, book=book)


def groups_through(memberships: Collection[Membership], *, now: datetime, book: Book) -> dict[str, datetime | None]:
    """The ids of the groups that these memberships put an enabled person into, every group above included, with their ends."""
    wanted = {above for one in memberships for above in (one.group_id, *path_ancestors(one.group_id))}
    groups = book.groups(wanted)
    moved_below = {above for one in memberships if one.group_id in groups for above in groups[one.group_id].ancestors}
    return counted_groups(memberships, groups=groups | book.groups(moved_below), now=now)


def roles_of(*, email: str, now: datetime, book: Book | None = None) -> tuple[EffectiveRole, ...]:
    """Return what each of a person's memberships gives at ``now`` on its group and everything below, in order of path; on any group the
    highest counts. Two strong requests; nothing for unknown or disabled people."""
    book = book or Book()
    person, memberships = book.held_by(email)
    if person is None or not person.is_enabled:
        return ()
    groups = book.groups(one.group_id for one in memberships)
    return effective_roles(memberships, groups=groups, now=now)


def role_on(*, email: str, group_id: str, now: datetime, book: Book | None = None) -> GroupRole | None:
    """Return the highest role of a person on a group at ``now``, given in it or above; ``None`` also for a group that does not exist. Two
    strong requests."""
    right = rights_on(email=email, group_ids=[group_id], now=now, book=book).get(group_id)
    return right.role if right is not None else None


def rights_on(*, email: str, group_ids: Collection[str], now: datetime, book: Book | None = None) -> dict[str, EffectiveRole]:
    """What :func:`role_on` says of each of the groups, with where it is given and when it ends; without those where it is none."""
    book = book or Book()
    person, memberships = book.held_by(email)
    if person is None or not person.is_enabled or not memberships:
        return {}
    groups = book.groups({*(one.group_id for one in memberships), *group_ids})
    rights = {
        group_id: right_at(memberships, groups=groups, group=groups[group_id], now=now) for group_id in group_ids if group_id in groups
    }
    return {group_id: right for group_id, right in rights.items() if right is not None}
