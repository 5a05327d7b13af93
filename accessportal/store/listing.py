"""A list is one declaration: the index, the order, and the record that an item becomes."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Generic, TypeVar

from pynamodb.expressions.condition import Condition
from pynamodb.indexes import Index

from accessportal.kernel.pages import Page, Unreadable, every
from accessportal.store.base import PortalModel
from accessportal.store.reading import RawItem, Sift, query_merged, query_page

M = TypeVar("M", bound=PortalModel)
R = TypeVar("R")
_BIG_PAGE = 500


@dataclass(frozen=True)
class Listing(Generic[M, R]):
    """Items of ``model`` under a key of ``index`` (none: of the table), in order of the range key, each as ``record`` makes it.

    ``name`` is signed into every cursor. ``consistent`` is for tables alone: an index may lag. ``stand_in`` makes the record of an
    item that can't be read, where a list has such items in their place.
    """

    name: str
    model: type[M]
    record: Callable[[M], R]
    index: Index[M] | None = None
    newest_first: bool = False
    consistent: bool = False
    stand_in: Callable[[RawItem], R] | None = None

    def __call__(
        self,
        key: str,
        *,
        cursor: str | None = None,
        limit: int = 50,
        where: Condition | None = None,
        bound: object = "",
        sift: Sift[R] | None = None,
    ) -> Page[R]:
        """One page under ``key``; ``where`` narrows the range key, and ``bound`` tells its cursors from those of another ``where``.
        ``sift``: those that it keeps of as many as one request reaches.

        :raises InvalidRequest: for a cursor that is not of this list.
        """
        return query_page(
            self.model,
            key,
            pattern=f"{self.name}:{key}:{bound}",
            convert=self.record,
            index=self.index,
            cursor=cursor,
            limit=limit,
            range_condition=where,
            newest_first=self.newest_first,
            consistent=self.consistent,
            stand_in=self.stand_in,
            sift=sift,
        )

    def merged(
        self, keys: Sequence[str], *, cursor: str | None = None, limit: int = 50, where: Condition | None = None, bound: object = ""
    ) -> Page[R]:
        """One page of what lies under some ``keys``, the largest range key first, as one list; one request a key."""
        assert self.index is not None
        return query_merged(
            self.model,
            keys,
            pattern=f"{self.name}:{'|'.join(keys)}:{bound}",
            convert=self.record,
            index=self.index,
            cursor=cursor,
            limit=limit,
            range_condition=where,
            stand_in=self.stand_in,
        )

    def every(
        self, key: str, *, where: Condition | None = None, past: Callable[[Unreadable], object] | None = None, at_once: int | None = None
    ) -> Iterator[R]:
        """All of them, to the end; ``past`` as in :func:`~accessportal.kernel.pages.every`."""
        return every(lambda cursor: self(key, cursor=cursor, limit=at_once or _BIG_PAGE, where=where), past=past)
