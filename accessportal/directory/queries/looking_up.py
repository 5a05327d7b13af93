"""Looking people up by a few letters, for whoever may see them."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from datetime import datetime
from functools import partial
from typing import Any

from accessportal.directory.policy import rights as policy
from accessportal.directory.queries.book import Book
from accessportal.directory.queries.roles import roles_of
from accessportal.directory.states import ROOT, GroupRole, PeopleFound, Person
from accessportal.directory.store.reading import page_of_members, page_of_people
from accessportal.kernel.actors import Actor, fold_email
from accessportal.kernel.pages import Page, Unreadable
from accessportal.store.reading import side_by_side

_MOST_NAMES = 1000
_MOST_GROUPS = 3
_MOST_MEMBERS = 100
_MOST_FOUND = _MOST_GROUPS * _MOST_MEMBERS
_FEWEST_LETTERS = 2


def look_up_people(
    *, text: str, limit: int, actor: Actor, now: datetime, book: Book, among: Sequence[str] = (), beside: Collection[str] = ()
) -> PeopleFound:
    """People whose address, or a word of whose name, begins with ``text``: of everybody for who sees everybody, and of the members of their
    own groups for other groups' admins. Of others whom the actor may see the caller knows: the members of the groups ``among``, and
    ``beside``. Addresses are found by the index, names among the first :data:`_MOST_NAMES` people. :raises NotAllowed: for who sees nobody.
    """
    admin_of = [one.group_id for one in roles_of(email=actor.name, now=now, book=book) if one.role is GroupRole.ADMIN]
    if not (among or beside):
        policy.may_look_up_people(admin_of, actor=actor).require()
    wanted = fold_email(text)
    if not (actor.reads_everything or ROOT in admin_of):
        return _among_members(list(dict.fromkeys((*among, *admin_of))), beside, wanted, limit, book)
    by_address = page_of_people(prefix=wanted, cursor=None, limit=limit + 1)
    found = _found(by_address.items, limit, unreadable=by_address.unreadable)
    if found.is_more or len(wanted) < _FEWEST_LETTERS or "@" in wanted:
        return found
    looked_through = page_of_people(prefix="", cursor=None, limit=_MOST_NAMES)
    known = {one.key for one in by_address.items}
    by_name = [one for one in looked_through.items if one.key not in known and _is_called(one, wanted)]
    return _found([*by_address.items, *by_name], limit, is_partial=_is_partial(looked_through), unreadable=by_address.unreadable)


def _among_members(group_ids: list[str], beside: Collection[str], wanted: str, limit: int, book: Book) -> PeopleFound:
    shown = group_ids[:_MOST_GROUPS]
    pages = side_by_side([partial(page_of_members, group_id, cursor=None, limit=_MOST_MEMBERS) for group_id in shown])
    keys = sorted({*beside, *(one.person for page in pages for one in page.items)})
    people = book.people(keys[:_MOST_FOUND]).values()
    fits = [one for one in people if one.key.startswith(wanted) or _is_called(one, wanted)]
    return _found(fits, limit, is_partial=len(group_ids) > len(shown) or len(keys) > _MOST_FOUND or any(map(_is_partial, pages)))


def _found(people: Sequence[Person], limit: int, *, is_partial: bool = False, unreadable: tuple[Unreadable, ...] = ()) -> PeopleFound:
    return PeopleFound(tuple(people[:limit]), is_more=len(people) > limit, is_partial=is_partial, unreadable=unreadable)


def _is_partial(page: Page[Any]) -> bool:
    """Others follow, or can't be read: by what they are called they are not found."""
    return page.next_cursor is not None or bool(page.unreadable)


def _is_called(person: Person, wanted: str) -> bool:
    """By the beginning of the whole name, or of a word of it."""
    name = person.name.casefold()
    return name.startswith(wanted) or any(word.startswith(wanted) for word in name.split())
