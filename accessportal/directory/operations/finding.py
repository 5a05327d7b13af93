"""Find what a change is about, or refuse."""

from __future__ import annotations

from collections.abc import Sequence

from accessportal.directory.queries.book import Book
from accessportal.directory.queries.lists import find_group
from accessportal.directory.states import Group, Membership, Person
from accessportal.kernel.errors import Conflict, NotFound


def held_by(email: str) -> tuple[Person, tuple[Membership, ...]]:
    """:raises NotFound: when nobody has this address."""
    person, memberships = Book().held_by(email)
    if person is None:
        raise NotFound("Nobody in the directory has this address.", code="person_not_found")
    return person, memberships


def membership_in(memberships: Sequence[Membership], group_id: str) -> Membership | None:
    return next((one for one in memberships if one.group_id == group_id), None)


def group_named(group_id: str) -> Group:
    """:raises NotFound: when there is no such group."""
    group = find_group(group_id=group_id)
    if group is None:
        raise NotFound("There is no group with this path.", code="group_not_found")
    return group


def require_not_deleting(person: Person) -> None:
    """:raises Conflict: when the person is being deleted."""
    if person.is_deleting:
        raise Conflict(f"{person.email} is being deleted.", code="person_deleting", present=person)
