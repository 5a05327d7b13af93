"""One page of a list that may be long."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Generic, TypeVar

from accessportal.kernel.errors import NoAnswer, Unavailable

T = TypeVar("T")
U = TypeVar("U")


@dataclass(frozen=True, slots=True)
class Unreadable:
    """An item of ``table`` that is not as its class says, so that somebody else must have written it; ``why`` in words.

    ``is_newer``: a newer version of the portal has, and it is right as it is."""

    table: str
    key: str
    why: str
    is_newer: bool = False

    def __str__(self) -> str:
        if self.is_newer:
            made = f"The item {self.key} of the table {self.table} was made by a newer version of the portal ({self.why})."
            return f"{made} This version leaves it alone; update this process."
        return f"The item {self.key} of the table {self.table} can't be read ({self.why}). Somebody else has changed it; mend it by hand."

    def error(self) -> UnreadableItem:
        """For those who need this very item, or must know that none is missing."""
        return UnreadableItem(self)


class UnreadableItem(Unavailable):
    """The ``item`` that is needed can't be read; the message names it."""

    def __init__(self, item: Unreadable) -> None:
        super().__init__(str(item), code="item_unreadable")
        self.item = item


@dataclass(frozen=True, slots=True)
class Page(Generic[T]):
    """``items`` in order, and the opaque ``next_cursor`` that continues after them (``None``: the last page). Whoever shows the items names
    the ``unreadable`` ones."""

    items: tuple[T, ...]
    next_cursor: str | None = None
    unreadable: tuple[Unreadable, ...] = ()

    @property
    def remarks(self) -> tuple[str, ...]:
        """What is to be said beside the items, in words."""
        return ()

    def map(self, convert: Callable[[T], U]) -> Page[U]:
        return Page(tuple(convert(item) for item in self.items), self.next_cursor, self.unreadable)


def every(fetch: Callable[[str | None], Page[T]], *, past: Callable[[Unreadable], object] | None = None) -> Iterator[T]:
    """Return all items of a paged list, to its end; ``fetch`` takes the cursor. ``past`` is told of each item that can't be read. :raises
    Unavailable: without it, at such an item: nobody decides as if it were not there."""
    cursor: str | None = None
    while True:
        page = fetch(cursor)
        for one in page.unreadable:
            if past is None:
                raise one.error()
            past(one)
        yield from page.items
        cursor = page.next_cursor
        if cursor is None:
            return


def as_far(found: Iterable[T], *, told: Callable[[NoAnswer], object]) -> Iterator[T]:
    """What comes of a list until no answer comes, which ``told`` hears: for whoever does one by one and goes on with what else there is."""
    try:
        yield from found
    except NoAnswer as error:
        told(error)
