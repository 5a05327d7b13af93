"""The only user of the AccessHistory item class. Its rows follow from the audit log, so no event tells of them."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Sequence
from dataclasses import replace
from datetime import datetime
from itertools import chain
from typing import TypeVar

from accessportal.history.models import HistoryItem
from accessportal.history.states import Interval, Mark, Progress, begin_of, moment_key
from accessportal.kernel.pages import Page
from accessportal.store.listing import Listing
from accessportal.store.reading import read_item, read_items, scan_all
from accessportal.store.records import form_of
from accessportal.store.transactions import Change, ConditionFailed, Insert, Overtaken, Remove, Step, Upsert, transact

T = TypeVar("T", Mark, Progress)
Span = tuple[str, str]
"""From one part to another, and all between them: one query."""
Row = tuple[str, Interval]
"""An interval with the sort key under which it was met."""
OPEN = "open"
# Of a transaction's 100 items; one is the mark.
_MOST_STEPS = 90
_MOST_MONTHS = 13
_LONGEST_KEY_BYTES = 1_800
_FORMS = {kind: form_of(kind) for kind in (Interval, Mark, Progress)}
_PROGRESS = ("progress", "progress")


def _load(kind: type[T]) -> Callable[[HistoryItem], T]:
    def load(item: HistoryItem) -> T:
        record: T = _FORMS[kind].load(json.loads(item.told))
        return replace(record, revision=int(item.revision))

    return load


def get_progress() -> Progress | None:
    """Strongly read."""

    def load(item: HistoryItem) -> Progress:
        return replace(_load(Progress)(item), is_outdated=(item.schema_version or 0) < HistoryItem.known_schema)

    return read_item(HistoryItem, load, *_PROGRESS)


def keep_progress(before: Progress | None, after: Progress) -> Progress:
    """:raises Overtaken: when somebody else changed it first."""
    return _kept(before, after, _PROGRESS, [])


def get_mark(generation: int, entity: str) -> Mark:
    """Strongly read; of what was never read the beginning."""
    return read_item(HistoryItem, _load(Mark), *_mark_key(generation, entity)) or Mark(entity=entity)


def keep_mark(generation: int, before: Mark, after: Mark) -> Mark:
    """Write the mark with the rows of what is to be written, as many as fit into a transaction, all or nothing. The rest is left to it.

    :raises Overtaken: when somebody else read on first.
    """
    steps: list[Step] = []
    written = 0
    for interval in after.to_write:
        further = _steps_of(generation, interval, is_shown=interval.key in after.shown)
        if steps and len(steps) + len(further) > _MOST_STEPS:
            break
        steps += further
        written += 1
    kept = after.to(to_write=after.to_write[written:])
    return _kept(before if before.revision else None, kept, _mark_key(generation, before.entity), steps)


def _kept(before: T | None, after: T, key: tuple[str, str], steps: list[Step]) -> T:
    revision = before.revision + 1 if before else 1
    told = _text(after)
    kept: Step
    if before is None:
        kept = Insert(HistoryItem(*key, told=told, revision=revision))
    else:
        actions = [HistoryItem.told.set(told), HistoryItem.revision.set(revision)]
        kept = Change(HistoryItem, key[0], actions, HistoryItem.revision == before.revision, key[1])
    try:
        transact([kept, *steps])
    except ConditionFailed as error:
        if error.step is kept:
            raise Overtaken from error
        raise
    return replace(after, revision=revision)


def _steps_of(generation: int, interval: Interval, *, is_shown: bool) -> list[Step]:
    """What is written of an interval that has changed: its open row, or (when it is over) the rows of the months that it touches.
    ``is_shown``: it has an open row."""
    place = _place(generation, interval.thing.key)
    if interval.gone_at is None:
        return [_row(place, generation, interval, OPEN)]
    shown = Remove(HistoryItem, place, HistoryItem.place.exists(), _row_key(OPEN, interval.key))
    parts = parts_of(interval.from_at, interval.gone_at)
    return [*([shown] if is_shown else []), *(_row(place, generation, interval, part) for part in parts)]


def _row(place: str, generation: int, interval: Interval, part: str) -> Upsert:
    person, told = HistoryItem.person_place, HistoryItem.told
    actions = [person.set(_place(generation, interval.who)), told.set(_text(interval))]
    # Written once, or as it is after the mark's last event: whoever comes late fails at the mark.
    return Upsert(HistoryItem, place, actions, told.exists() | told.does_not_exist(), _row_key(part, interval.key))


def parts_of(begin: datetime, end: datetime) -> list[str]:
    """The months that it touches; of what is longer than a year, the years. In order of text a year comes after its months, and what is
    open after all."""
    first, last = begin.year * 12 + begin.month - 1, end.year * 12 + end.month - 1
    if last - first < _MOST_MONTHS:
        return [f"{number // 12}-{number % 12 + 1:02d}" for number in range(first, last + 1)]
    return [str(year) for year in range(begin.year, end.year + 1)]


def spans_of(begin: datetime, end: datetime, *, is_late: bool) -> list[Span]:
    """The parts in which something that was so in this time may lie; ``is_late``: with those of the months after it, as one span."""
    first, last, year = f"{begin:%Y-%m}", f"{end:%Y-%m}", f"{end:%Y}"
    return [(first, OPEN)] if is_late else [(first, last), (year, year), (OPEN, OPEN)]


def page_of(
    generation: int, name: str, span: Span, *, begin: datetime, end: datetime, is_person: bool = False, cursor: str | None, limit: int
) -> Page[Row]:
    """What of a thing, or of a person (the index may lag), lies in ``span`` and was so at some moment from ``begin`` on and before ``end``.
    Whoever reads all spans of that time meets each interval once: in the first of its parts there."""

    def is_met(part: str, interval: Interval) -> bool:
        since = max(interval.from_at, begin)
        return interval.overlaps(begin, end) and part in (OPEN, f"{since:%Y-%m}", f"{since:%Y}")

    where = HistoryItem.row.between(_row_key(span[0], ""), _row_key(span[1], f"{moment_key(end)}~"))
    listing = _of_person if is_person else _of_thing
    page = listing(_place(generation, name), cursor=cursor, limit=limit, where=where, bound=(span, end))
    rows = tuple((_row_key(part, one.key), one) for part, one in page.items if is_met(part, one))
    return Page(rows, page.next_cursor, page.unreadable)


def find_each(generation: int, wanted: Sequence[tuple[str, str]], *, begin: datetime) -> list[Interval]:
    """The intervals of these things with these keys, that were so after ``begin``, in one request, strongly read.

    :raises LookupError: when one is not there.
    """
    rows: list[list[tuple[str, str]]] = []
    for name, key in wanted:
        since = max(begin_of(key), begin)
        parts = (OPEN, f"{since:%Y-%m}", f"{since:%Y}")
        rows.append([(_place(generation, name), _row_key(part, key)) for part in parts])
    found = read_items(HistoryItem, _placed, chain.from_iterable(rows))
    each = [next((found[key][1] for key in keys if key in found), None) for keys in rows]
    if None in each:
        raise LookupError("an interval is there no more")
    return [one for one in each if one]


def clear(generation: int, *, segment: int, segments: int) -> int:
    """Delete what is of other generations in one of the ``segments`` of the table; how many there were."""
    kept, deleted = f"{generation}|", 0
    for key in scan_all(HistoryItem, _key, stand_in=lambda raw: (raw["place"]["S"], raw["row"]["S"]), segment=segment, segments=segments):
        if key != _PROGRESS and not key[0].startswith(kept):
            _forget(key)
            deleted += 1
    return deleted


def _key(item: HistoryItem) -> tuple[str, str]:
    return item.place, item.row


def _forget(key: tuple[str, str]) -> None:
    try:
        transact([Remove(HistoryItem, key[0], HistoryItem.place.exists(), key[1])])
    except ConditionFailed:
        return


def _place(generation: int, name: str) -> str:
    """A longer name than a key may have is told by its hash."""
    if len(name.encode()) > _LONGEST_KEY_BYTES:
        name = hashlib.sha256(name.encode()).hexdigest()
    return f"{generation}|{name}"


def _row_key(part: str, key: str) -> str:
    return f"{part}|{key}"


def _mark_key(generation: int, entity: str) -> tuple[str, str]:
    return _place(generation, f"mark|{entity}"), "mark"


def _placed(item: HistoryItem) -> tuple[str, Interval]:
    return item.row.partition("|")[0], _FORMS[Interval].load(json.loads(item.told))


def _text(record: Interval | Mark | Progress) -> str:
    """JSON: many times faster to read than a map."""
    return json.dumps(_FORMS[type(record)].store(record), separators=(",", ":"), ensure_ascii=False)


_of_thing = Listing("history.thing", HistoryItem, _placed, consistent=True)
_of_person = Listing("history.person", HistoryItem, _placed, HistoryItem.person_index)
