"""Reads: a strong get, and pages of a query with signed cursors."""

from __future__ import annotations

import functools
import heapq
import itertools
import os
import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any, Generic, TypeVar

from pynamodb.attributes import Attribute
from pynamodb.connection.base import BOTOCORE_EXCEPTIONS
from pynamodb.exceptions import AttributeDeserializationError, DoesNotExist, GetError, PynamoDBException
from pynamodb.expressions.condition import Condition
from pynamodb.indexes import Index

from accessportal.kernel.counts import Count
from accessportal.kernel.errors import NoAnswer
from accessportal.kernel.pages import Page, Unreadable, UnreadableItem
from accessportal.store.base import PortalModel, connection, current_settings, unavailable
from accessportal.store.cursors import read_cursor, sign_cursor
from accessportal.store.newer_versions import NewerItem, known

M = TypeVar("M", bound=PortalModel)
R = TypeVar("R")
K = TypeVar("K", str, tuple[str, str], tuple[str, int])
RawItem = Mapping[str, Any]
"""An item as DynamoDB sends it: ``{"status": {"S": "ACTIVE"}, …}``."""

ItemKey = tuple[type[PortalModel], str] | tuple[type[PortalModel], str, str | int]
"""An item: its table and its key, of one part or two."""
ReadAhead = dict[ItemKey, Any]
"""Items that were strongly read before they are asked for. Whoever asks first takes them out: who asks again, reads again."""


@dataclass(frozen=True, slots=True)
class Sift(Generic[R]):
    """What a list is looked through for, in one request. ``keep`` gives of some records those that are looked for, in their order, and is
    asked for no more than a page takes. ``most`` are looked at: DynamoDB sends about 500 (1 MB), and a page has the time to judge them."""

    keep: Callable[[Sequence[R]], Iterable[R]]
    most: int = 500


_LONGEST_KEY_BYTES = 2048
# DynamoDB's limit, and how often what it left out for being busy is asked for again.
_MOST_TOGETHER = 100
_MOST_ASKED = 5
_PAUSE_SECONDS = 0.05
BROKEN = (ArithmeticError, AttributeError, LookupError, OSError, TypeError, ValueError)
"""What reading raises when an item is not what its class says (a time of the year five billion is an OSError)."""


def read_item(model: type[M], convert: Callable[[M], R], *key: Any) -> R | None:
    """:func:`get_item`, converted.

    :raises Unavailable: also when the item can't be read; it is named.
    """
    item = get_item(model, *key)
    return None if item is None else read_as(convert, item)


def read_as(convert: Callable[[M], R], item: M) -> R:
    """The item, converted. What makes no sense in it was written by somebody else.

    :raises Unavailable: when it can't be read; it is named.
    """
    try:
        return convert(_complete(item))
    except BROKEN as error:
        raise unreadable(type(item), _key_of(item), error) from error


def read_items(
    model: type[M], convert: Callable[[M], R], keys: Iterable[K], *, past: Callable[[Unreadable], object] | None = None
) -> dict[K, R]:
    """Those that exist, by key (with a sort key: both, as a pair), strongly read, in the order of their keys, 100 to a request (a DynamoDB
    limit); ``past`` as in :func:`every`.

    :raises Unavailable: when the store did not answer, or (without ``past``) an item can't be read; it is named.
    """
    wanted = sorted({key for key in keys if _is_key(_parts(key)[0])})
    try:
        found = {_key_of(item): item for item in model.batch_get(wanted, consistent_read=True)} if wanted else {}
        reads: dict[K, Callable[[], R | None]] = {
            key: partial(read_as, convert, found[_parts(key)]) for key in wanted if _parts(key) in found
        }
    except AttributeDeserializationError:
        # It does not say of which item; one by one, it is named.
        reads = {key: partial(read_item, model, convert, *_parts(key)) for key in wanted}
    except PynamoDBException as error:
        raise unavailable(error) from error
    records: dict[K, R] = {}
    for key, read in reads.items():
        try:
            record = read()
        except UnreadableItem as error:
            if past is None:
                raise
            past(error.item)
        else:
            records |= {} if record is None else {key: record}
    return records


def side_by_side(reads: Sequence[Callable[[], R]]) -> list[R]:
    """What each of some reads answers, in their order; so many at a time as the settings say, of all threads of this process together.

    :raises Exception: what the first read that failed, in their order, raises.
    """
    workers = current_settings().reads_side_by_side
    if workers < 2 or len(reads) < 2:
        return [read() for read in reads]
    return list(_readers(os.getpid(), workers).map(lambda read: read(), reads))


@functools.cache
def _readers(_process: int, workers: int) -> ThreadPoolExecutor:
    """Of each process its own: threads are not forked."""
    return ThreadPoolExecutor(workers, thread_name_prefix="read")


def get_item(model: type[M], hash_key: str, range_key: str | int | None = None) -> M | None:
    """The item, strongly read, or ``None`` when it does not exist.

    :raises Unavailable: when the store did not answer, never ``None`` for that; and for an item of a newer version, which is named.
    """
    if not _is_key(hash_key):
        return None
    try:
        return known(model.get(hash_key, range_key, consistent_read=True))
    except DoesNotExist:
        return None
    except (AttributeDeserializationError, NewerItem) as error:
        raise unreadable(model, (hash_key,) if range_key is None else (hash_key, range_key), error) from error
    except PynamoDBException as error:
        raise unavailable(error) from error


@dataclass
class Beside:
    """Items to be read in the same request as another one: ``keys`` tells which, by the key of that one; ``found`` are those read so."""

    keys: Callable[[str], Sequence[ItemKey]]
    found: ReadAhead = field(default_factory=dict)


def get_ahead(key: ItemKey, ahead: ReadAhead) -> Any:
    """As :func:`get_item`, unless it was read ahead."""
    return ahead.pop(key) if key in ahead else get_item(*key)


def get_together(wanted: Sequence[ItemKey], *, ahead: ReadAhead | None = None) -> list[Any]:
    """As :func:`get_item` for items of any tables, in the order given, with one request for each hundred (a DynamoDB limit) that were not
    read ahead."""
    found: ReadAhead = {key: ahead.pop(key) for key in set(wanted) & ahead.keys()} if ahead else {}
    keys = [key for key in dict.fromkeys(wanted) if key not in found and _is_key(key[1])]
    for start in range(0, len(keys), _MOST_TOGETHER):
        found |= _get_some(keys[start : start + _MOST_TOGETHER])
    return [found.get(key) for key in wanted]


def _get_some(keys: Sequence[ItemKey]) -> dict[ItemKey, PortalModel]:
    pending: dict[str, dict[str, Any]] = {}
    for model, *values in keys:
        raw_key = {key.attr_name: {key.attr_type: key.serialize(value)} for key, value in zip(keys_of(model).values(), values, strict=True)}
        pending.setdefault(model.Meta.table_name, {"Keys": [], "ConsistentRead": True})["Keys"].append(raw_key)
    # A table's items may have several classes; all of them have its keys.
    any_of = {key[0].Meta.table_name: key[0] for key in keys}
    models = {(key[0].Meta.table_name, *key[1:]): key[0] for key in keys}
    found: dict[ItemKey, PortalModel] = {}
    for attempt in range(_MOST_ASKED):
        try:
            answer = connection().dispatch("BatchGetItem", {"RequestItems": pending})
        except BOTOCORE_EXCEPTIONS as error:
            raise unavailable(GetError("The items were not read", error)) from error
        for table, items in answer["Responses"].items():
            for raw in items:
                key: Any = _values_of_key(any_of[table], raw)
                model = models[table, *key]
                found[(model, *key)] = _known_item(model, raw)
        pending = answer.get("UnprocessedKeys") or {}
        if not pending:
            return found
        time.sleep(_PAUSE_SECONDS * 2**attempt)
    raise NoAnswer("The database has too much to do right now. Try again.", code="store_contended")


def _known_item(model: type[PortalModel], raw: RawItem) -> PortalModel:
    try:
        return known(model.from_raw_data(dict(raw)))
    except (AttributeDeserializationError, NewerItem) as error:
        raise unreadable(model, key_in(model, raw), error) from error


def _values_of_key(model: type[PortalModel], raw: RawItem) -> tuple[Any, ...]:
    return tuple(part.deserialize(part.get_value(raw[part.attr_name])) for part in keys_of(model).values())


def query_page(
    model: type[M],
    hash_key: str | int,
    *,
    pattern: str,
    convert: Callable[[M], R],
    index: Index[M] | None = None,
    cursor: str | None = None,
    limit: int = 50,
    range_condition: Condition | None = None,
    newest_first: bool = False,
    consistent: bool = False,
    stand_in: Callable[[RawItem], R] | None = None,
    sift: Sift[R] | None = None,
) -> Page[R]:
    """One request to the engine: at most ``limit`` items of a table or index under ``hash_key``, converted; with ``sift`` those that it
    keeps of as many as one request reaches: such a page may be short, or empty, and still have a next one.

    ``pattern`` names the query and everything it is bound to (for example ``requests.by_subject:alice@…``); the cursor
    that comes back works with the same pattern alone. A next cursor means that there really is a next item.

    An item that is not what its class says (somebody else wrote it) is named in the page's ``unreadable`` and stops no other;
    ``stand_in`` is for ``convert`` where a list has such items in their place.

    :raises InvalidRequest: for a cursor that is not ours.
    :raises Unavailable: when the store did not answer.
    """
    start = read_cursor(pattern, cursor)
    if not _is_key(hash_key):
        return Page(items=())
    most = limit if sift is None else max(limit, sift.most)
    read = _read_raw(model, hash_key, start, index, most, range_condition, newest_first=newest_first, consistent=consistent)
    if sift is not None:
        return _sifted(read, partial(_each_converted, model, convert=convert, stand_in=stand_in), sift.keep, pattern=pattern, limit=limit)
    items, broken = _converted(model, read.items, convert, stand_in)
    return Page(items, sign_cursor(pattern, read.last_key), broken)


def _sifted(
    read: _RawPage,
    converted: Callable[[Sequence[RawItem]], list[R | Unreadable]],
    keep: Callable[[Sequence[R]], Iterable[R]],
    *,
    pattern: str,
    limit: int,
) -> Page[R]:
    """As many as fill a page; where the first ones do, no work is done on the others."""
    found: list[R] = []
    broken: list[Unreadable] = []
    last_key = read.last_key
    for start, end in ((0, limit), (limit, len(read.items))):
        batch = converted(read.items[start:end])
        kept = list(itertools.islice(keep([one for one in batch if not isinstance(one, Unreadable)]), limit - len(found)))
        found += kept
        if is_full := len(found) == limit:
            batch = batch[: 1 + next(place for place, one in enumerate(batch) if one is kept[-1])]
            seen = start + len(batch)
            last_key = read.key_of(seen - 1) if seen < len(read.items) else last_key
        broken += [one for one in batch if isinstance(one, Unreadable)]
        if is_full:
            break
    return Page(tuple(found), sign_cursor(pattern, last_key), tuple(broken))


def query_merged(
    model: type[M],
    hash_keys: Sequence[str],
    *,
    pattern: str,
    convert: Callable[[M], R],
    index: Index[M],
    cursor: str | None = None,
    limit: int = 50,
    range_condition: Condition | None = None,
    stand_in: Callable[[RawItem], R] | None = None,
) -> Page[R]:
    """As :func:`query_page` of what lies under some keys of an index, together, the largest range key first. One request a key, side by
    side; the cursor holds where each unfinished key goes on.

    Not simply "below this": what has the same range key may stand on both sides of the end of a page.
    """
    starts: dict[str, Any] = read_cursor(pattern, cursor) or dict.fromkeys(hash_keys)
    reads = [partial(_read_raw, model, key, start, index, limit, range_condition, newest_first=True) for key, start in starts.items()]
    found = dict(zip(starts, side_by_side(reads), strict=True))
    attributes: Any = index.Meta
    (range_key,) = (one.attr_name for one in attributes.attributes.values() if one.is_range_key)
    lines = ([(key, raw) for raw in read.items] for key, read in found.items())
    ranked = heapq.merge(*lines, key=lambda one: float(one[1][range_key]["N"]), reverse=True)
    taken = list(itertools.islice(ranked, limit))
    used = Counter(key for key, _ in taken)
    rest = {
        key: read.last_key if used[key] == len(read.items) else read.key_of(used[key] - 1) if used[key] else starts[key]
        for key, read in found.items()
        if used[key] < len(read.items) or read.last_key
    }
    items, broken = _converted(model, [raw for _, raw in taken], convert, stand_in)
    return Page(items, sign_cursor(pattern, rest or None), broken)


@dataclass(frozen=True, slots=True)
class _RawPage:
    """``last_key``: where a query goes on after them, where there is more; ``names`` are those of its parts."""

    items: list[RawItem]
    last_key: dict[str, Any] | None
    names: tuple[str, ...]

    def key_of(self, place: int) -> dict[str, Any]:
        return {name: self.items[place][name] for name in self.names}


def _read_raw(
    model: type[PortalModel],
    hash_key: str | int,
    start: dict[str, Any] | None,
    index: Index[Any] | None,
    limit: int,
    range_condition: Condition | None,
    *,
    newest_first: bool,
    consistent: bool = False,
) -> _RawPage:
    try:
        results = model.query(
            hash_key,
            range_condition,
            index_name=index.Meta.index_name if index is not None else None,
            scan_index_forward=not newest_first,
            page_size=limit + 1,
            last_evaluated_key=start,
            consistent_read=consistent,
        )
        items = next(results.page_iter)["Items"]
        read = _RawPage(items[:limit], results.page_iter.last_evaluated_key, tuple(results.page_iter.key_names))
    except PynamoDBException as error:
        raise unavailable(error) from error
    return replace(read, last_key=read.key_of(limit - 1)) if len(items) > limit else read


def _converted(
    model: type[M], raw_items: Iterable[RawItem], convert: Callable[[M], R], stand_in: Callable[[RawItem], R] | None
) -> tuple[tuple[R, ...], tuple[Unreadable, ...]]:
    each = _each_converted(model, raw_items, convert, stand_in)
    return tuple(one for one in each if not isinstance(one, Unreadable)), tuple(one for one in each if isinstance(one, Unreadable))


def _each_converted(
    model: type[M], raw_items: Iterable[RawItem], convert: Callable[[M], R], stand_in: Callable[[RawItem], R] | None
) -> list[R | Unreadable]:
    converted: list[R | Unreadable] = []
    for raw in raw_items:
        try:
            converted.append(convert(_complete(model.from_raw_data(dict(raw)))))
        except BROKEN as error:
            converted.append(stand_in(raw) if stand_in is not None else unreadable(model, key_in(model, raw), error).item)
    return converted


def count_items(
    model: type[M],
    hash_key: str,
    index: Index[M],
    *,
    where: Condition | None = None,
    only: Condition | None = None,
    up_to: int | None = None,
) -> int:
    """How many items of ``index`` under ``hash_key`` meet ``where`` (about the range key) and ``only``, to the end or ``up_to`` so many.

    :raises Unavailable: when the store did not answer.
    """
    try:
        return model.count(hash_key, where, only, index_name=index.Meta.index_name, limit=up_to)
    except PynamoDBException as error:
        raise unavailable(error) from error


def count_once(model: type[M], hash_key: str, index: Index[M], *, where: Condition, only: Condition) -> Count:
    """As :func:`count_items`, as far as one request reaches.

    :raises Unavailable: when the store did not answer.
    """
    try:
        table = model._get_connection()
        found = table.query(hash_key, where, only, index_name=index.Meta.index_name, select="COUNT")
    except PynamoDBException as error:
        raise unavailable(error) from error
    return Count(found["Count"], is_more="LastEvaluatedKey" in found)


def scan_all(model: type[M], convert: Callable[[M], R], *, stand_in: Callable[[RawItem], R], segment: int, segments: int) -> Iterator[R]:
    """Every item of one of the ``segments`` that the table is cut into, strongly read: what has one hash key is in one of them, beside
    each other. ``stand_in`` is for ``convert`` where an item is not what its class says. For checks, not for pages.

    :raises Unavailable: when the store did not answer.
    """
    try:
        for page in model.scan(consistent_read=True, segment=segment, total_segments=segments).page_iter:
            for raw in page["Items"]:
                try:
                    yield convert(_complete(model.from_raw_data(dict(raw))))
                except BROKEN:
                    yield stand_in(raw)
    except PynamoDBException as error:
        raise unavailable(error) from error


def scan_records(model: type[M], convert: Callable[[M], R | None], *, past: Callable[[Unreadable], object]) -> Iterator[R]:
    """The records of a whole table, strongly read, one after the other as they lie; ``convert`` gives ``None`` for what is none. ``past``
    is told of what can't be read. For checks, not for pages.

    :raises Unavailable: when the store did not answer.
    """

    def named(raw: RawItem) -> None:
        try:
            convert(_complete(model.from_raw_data(dict(raw))))
        except BROKEN as error:
            past(unreadable(model, key_in(model, raw), error).item)

    found = scan_all(model, convert, stand_in=named, segment=0, segments=1)
    return (one for one in found if one is not None)


def _complete(item: M) -> M:
    """PynamoDB reads a missing attribute as ``None``, whatever its class says.

    :raises ValueError: naming what is missing, or as :func:`known`.
    """
    known(item)
    missing = [name for name, attribute in item.get_attributes().items() if not attribute.null and getattr(item, name) is None]
    if missing:
        raise ValueError(f"{', '.join(missing)} missing")
    return item


def key_in(model: type[PortalModel], raw: RawItem) -> tuple[Any, ...]:
    """The key of an item as DynamoDB sends it."""
    return tuple(next(iter(raw[key.attr_name].values())) for key in keys_of(model).values())


def unreadable(model: type[PortalModel], key: Sequence[object], error: Exception) -> UnreadableItem:
    """The error that names the item; of a person, a group and whatever else has the same key twice, once."""
    name, why = ", ".join(dict.fromkeys(map(str, key))), str(error) or type(error).__name__
    return Unreadable(model.base_table_name, name, why, is_newer=isinstance(error, NewerItem)).error()


def keys_of(model: type[PortalModel]) -> dict[str, Attribute[Any]]:
    """The attributes of the item's key, first the hash key."""
    keys = [one for one in model.get_attributes().items() if one[1].is_hash_key or one[1].is_range_key]
    return dict(sorted(keys, key=lambda one: one[1].is_range_key))


def _key_of(item: PortalModel) -> tuple[Any, ...]:
    return tuple(getattr(item, name) for name in keys_of(type(item)))


def _parts(key: object) -> tuple[Any, ...]:
    return key if isinstance(key, tuple) else (key,)


def _is_key(value: str | int) -> bool:
    """Whether any item can lie under it. DynamoDB refuses to look for the others, and that is no failure of the store."""
    if not isinstance(value, str):
        return True
    try:
        return 0 < len(value.encode()) <= _LONGEST_KEY_BYTES
    except UnicodeEncodeError:
        return False
