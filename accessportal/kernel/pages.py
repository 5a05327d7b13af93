"""One page of a list that may be long."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Generic, TypeVar

T = TypeVar("T")
U = TypeVar("U")


@dataclass(frozen=True, slots=True)
class Page(Generic[T]):
    """``items`` in order, and the opaque ``next_cursor`` that continues after them (``None``: this was the last page)."""

    items: tuple[T, ...]
    next_cursor: str | None = None

    def map(self, convert: Callable[[T], U]) -> Page[U]:
        return Page(items=tuple(convert(item) for item in self.items), next_cursor=self.next_cursor)


def every(fetch: Callable[[str | None], Page[T]]) -> Iterator[T]:
    """All items of a paged list, to its end. ``fetch`` takes the cursor, ``None`` first."""
    cursor: str | None = None
    while True:
        page = fetch(cursor)
        yield from page.items
        cursor = page.next_cursor
        if cursor is None:
            return
