"""Looking people up by a few letters, for whoever may see them."""

from __future__ import annotations

from datetime import datetime
from functools import partial

from accessportal.directory.policy import rights as policy
from accessportal.directory.queries.book import Book
from accessportal.directory.queries.roles import roles_of
from accessportal.directory.states import ROOT, GroupRole, PeopleFound, Person
from accessportal.directory.store.reading import page_of_members, page_of_people
from accessportal.kernel.actors import Actor, fold_email
from accessportal.store.reading import side_by_side

_MOST_NAMES = 1000
_MOST_GROUPS = 3
_MOST_MEMBERS = 100
_FEWEST_LETTERS = 2


def look_up_people(*, text: str, limit: int, actor: Actor, now: datetime, book: Book) -> PeopleFound:
    """People whose address, or a word of whose name, begins with ``text``: of everybody for who sees everybody, and of the members of their
    own groups for other groups' admins. Addresses are found by the index, names among the first :data:`_MOST_NAMES` people.

    :raises NotAllowed: for who is neither.
    """
    admin_of = [one.group_id for one in roles_of(email=actor.name, now=now, book=book) if one.role is GroupRole.ADMIN]
    policy.may_look_up_people(admin_of, actor=actor).require()
    wanted = fold_email(text)
    if not (actor.reads_everything or ROOT in admin_of):
        return _among_members(admin_of, wanted, limit, book)
    by_address = page_of_people(prefix=wanted, cursor=None, limit=limit + 1).items
    if len(by_address) > limit or len(wanted) < _FEWEST_LETTERS or "@" in wanted:
        return _found(by_address, limit)
    looked_through = page_of_people(prefix="", cursor=None, limit=_MOST_NAMES)
    known = {one.key for one in by_address}
    by_name = [one for one in looked_through.items if one.key not in known and _is_called(one, wanted)]
    return _found([*by_address, *by_name], limit, is_partial=looked_through.next_cursor is not None)


def _among_members(admin_of: list[str], wanted: str, limit: int, book: Book) -> PeopleFound:
    shown = admin_of[:_MOST_GROUPS]
    pages = side_by_side([partial(page_of_members, group_id, cursor=None, limit=_MOST_MEMBERS) for group_id in shown])
    people = book.people(sorted({one.person for page in pages for one in page.items})).values()
    fits = [one for one in people if one.key.startswith(wanted) or _is_called(one, wanted)]
    return _found(fits, limit, is_partial=len(admin_of) > len(shown) or any(page.next_cursor for page in pages))


def _found(people: list[Person] | tuple[Person, ...], limit: int, *, is_partial: bool = False) -> PeopleFound:
    return PeopleFound(tuple(people[:limit]), is_more=len(people) > limit, is_partial=is_partial)


def _is_called(person: Person, wanted: str) -> bool:
    """By the beginning of the whole name, or of a word of it."""
    name = person.name.casefold()
    return name.startswith(wanted) or any(word.startswith(wanted) for word in name.split())
