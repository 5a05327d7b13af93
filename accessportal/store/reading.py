"""Reads: a strong get, and pages of a query with signed cursors."""

from __future__ import annotations

import functools
import os
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any, TypeVar

from pynamodb.attributes import Attribute
from pynamodb.connection.base import BOTOCORE_EXCEPTIONS
from pynamodb.exceptions import AttributeDeserializationError, DoesNotExist, GetError, PynamoDBException
from pynamodb.expressions.condition import Condition
from pynamodb.indexes import Index

from accessportal.kernel.errors import NoAnswer, Unavailable
from accessportal.kernel.pages import Page, Unreadable
from accessportal.store.base import PortalModel, connection, current_settings, unavailable
from accessportal.store.cursors import read_cursor, sign_cursor

M = TypeVar("M", bound=PortalModel)
R = TypeVar("R")
RawItem = Mapping[str, Any]
"""An item as DynamoDB sends it: ``{"status": {"S": "ACTIVE"}, …}``."""

ItemKey = tuple[type[PortalModel], str, str | int]
"""An item of a table with a range key."""

_LONGEST_KEY_BYTES = 2048
# DynamoDB's limit, and how often what it left out for being busy is asked for again.
_MOST_TOGETHER = 100
_MOST_ASKED = 5
_PAUSE_SECONDS = 0.05
BROKEN = (ArithmeticError, AttributeError, LookupError, OSError, TypeError, ValueError)
"""What reading raises when an item is not what its class says (a time of the year five billion is an OSError)."""


class NewerItem(ValueError):
    """A newer version of the portal made it: this one leaves it alone."""


def known(item: M) -> M:
    """:raises NewerItem: for an item that this version may misread."""
    if (item.schema_version or 0) > item.known_schema:
        raise NewerItem(f"its schema is {item.schema_version:.0f}, and {item.known_schema} is known here")
    return item


def read_item(model: type[M], convert: Callable[[M], R], hash_key: str, range_key: str | int | None = None) -> R | None:
    """:func:`get_item`, converted.

    :raises Unavailable: also when the item can't be read; it is named.
    """
    item = get_item(model, hash_key, range_key)
    if item is None:
        return None
    try:
        return convert(_complete(item))
    except BROKEN as error:
        raise _unreadable(model, hash_key if range_key is None else f"{hash_key}, {range_key}", error).error() from error


def read_items(
    model: type[M], convert: Callable[[M], R], hash_keys: Iterable[str], *, past: Callable[[Unreadable], object] | None = None
) -> dict[str, R]:
    """Those that exist, by key, strongly read, 100 to a request (a DynamoDB limit); ``past`` as in :func:`every`.

    :raises Unavailable: when the store did not answer, or (without ``past``) an item can't be read; it is named.
    """
    wanted = {key for key in hash_keys if _is_key(key)}
    (key_name,) = (name for name, attribute in model.get_attributes().items() if attribute.is_hash_key)
    found: dict[str, R] = {}
    try:
        items = {getattr(item, key_name): item for item in model.batch_get(sorted(wanted), consistent_read=True)} if wanted else {}
    except AttributeDeserializationError:
        # It does not say of which item; one by one, it is named.
        for key in sorted(wanted):
            try:
                one = read_item(model, convert, key)
            except Unavailable as error:
                if past is None or error.code != "item_unreadable":
                    raise
                past(Unreadable(model.base_table_name, key, str(error.__cause__), is_newer=isinstance(error.__cause__, NewerItem)))
            else:
                found |= {} if one is None else {key: one}
        return found
    except PynamoDBException as error:
        raise unavailable(error) from error
    for key, item in items.items():
        try:
            found[key] = convert(_complete(item))
        except BROKEN as error:
            broken = _unreadable(model, key, error)
            if past is None:
                raise broken.error() from error
            past(broken)
    return found


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
        raise _unreadable(model, str(hash_key), error).error() from error
    except PynamoDBException as error:
        raise unavailable(error) from error


def get_together(wanted: Sequence[ItemKey]) -> list[Any]:
    """As :func:`get_item` for items of any tables, in the order given, with one request for each hundred (a DynamoDB limit)."""
    keys = [key for key in dict.fromkeys(wanted) if _is_key(key[1])]
    found: dict[ItemKey, PortalModel] = {}
    for start in range(0, len(keys), _MOST_TOGETHER):
        found |= _get_some(keys[start : start + _MOST_TOGETHER])
    return [found.get(key) for key in wanted]


def _get_some(keys: Sequence[ItemKey]) -> dict[ItemKey, PortalModel]:
    pending: dict[str, dict[str, Any]] = {}
    for model, *values in keys:
        raw_key = {key.attr_name: {key.attr_type: key.serialize(value)} for key, value in zip(_keys_of(model), values, strict=True)}
        pending.setdefault(model.Meta.table_name, {"Keys": [], "ConsistentRead": True})["Keys"].append(raw_key)
    models = {key[0].Meta.table_name: key[0] for key in keys}
    found: dict[ItemKey, PortalModel] = {}
    for attempt in range(_MOST_ASKED):
        try:
            answer = connection().dispatch("BatchGetItem", {"RequestItems": pending})
        except BOTOCORE_EXCEPTIONS as error:
            raise unavailable(GetError("The items were not read", error)) from error
        for table, items in answer["Responses"].items():
            found |= dict(_known_item(models[table], raw) for raw in items)
        pending = answer.get("UnprocessedKeys") or {}
        if not pending:
            return found
        time.sleep(_PAUSE_SECONDS * 2**attempt)
    raise NoAnswer("The database has too much to do right now. Try again.", code="store_contended")


def _known_item(model: type[PortalModel], raw: RawItem) -> tuple[ItemKey, PortalModel]:
    try:
        item = known(model.from_raw_data(dict(raw)))
    except (AttributeDeserializationError, NewerItem) as error:
        raise _unreadable(model, _key_in(model, raw), error).error() from error
    hash_key, range_key = (key.deserialize(key.get_value(raw[key.attr_name])) for key in _keys_of(model))
    return (model, hash_key, range_key), item


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
    unreadable: Callable[[RawItem], R] | None = None,
) -> Page[R]:
    """One request to the engine: at most ``limit`` items of a table or index under ``hash_key``, converted.

    ``pattern`` names the query and everything it is bound to (for example ``requests.by_subject:alice@…``); the cursor
    that comes back works with the same pattern alone. A next cursor means that there really is a next item.

    An item that is not what its class says (somebody else wrote it) is named in the page's ``unreadable`` and stops no other;
    ``unreadable`` stands in for ``convert`` where a list has such items in their place.

    :raises InvalidRequest: for a cursor that is not ours.
    :raises Unavailable: when the store did not answer.
    """
    start = read_cursor(pattern, cursor)
    if not _is_key(hash_key):
        return Page(items=())
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
        raw_items = next(results.page_iter)["Items"]
        last_key = results.page_iter.last_evaluated_key
        if len(raw_items) > limit:
            raw_items = raw_items[:limit]
            last_key = {name: raw_items[-1][name] for name in results.page_iter.key_names}
    except PynamoDBException as error:
        raise unavailable(error) from error
    items: list[R] = []
    broken: list[Unreadable] = []
    for raw in raw_items:
        try:
            items.append(convert(_complete(model.from_raw_data(dict(raw)))))
        except BROKEN as error:
            if unreadable is not None:
                items.append(unreadable(raw))
            else:
                broken.append(_unreadable(model, _key_in(model, raw), error))
    return Page(tuple(items), sign_cursor(pattern, last_key), tuple(broken))


def scan_all(model: type[M], convert: Callable[[M], R], *, unreadable: Callable[[RawItem], R], segment: int, segments: int) -> Iterator[R]:
    """Every item of one of the ``segments`` that the table is cut into, strongly read: what has one hash key is in one of them, beside
    each other. ``unreadable`` stands in for ``convert`` where an item is not what its class says. For checks, not for pages.

    :raises Unavailable: when the store did not answer.
    """
    try:
        for page in model.scan(consistent_read=True, segment=segment, total_segments=segments).page_iter:
            for raw in page["Items"]:
                try:
                    yield convert(_complete(model.from_raw_data(dict(raw))))
                except BROKEN:
                    yield unreadable(raw)
    except PynamoDBException as error:
        raise unavailable(error) from error


def _complete(item: M) -> M:
    """PynamoDB reads a missing attribute as ``None``, whatever its class says.

    :raises ValueError: naming what is missing, or as :func:`known`.
    """
    known(item)
    missing = [name for name, attribute in item.get_attributes().items() if not attribute.null and getattr(item, name) is None]
    if missing:
        raise ValueError(f"{', '.join(missing)} missing")
    return item


def _key_in(model: type[PortalModel], raw: RawItem) -> str:
    """The item's own key; of a person, a group and whatever else has the same key twice, once."""
    return ", ".join(dict.fromkeys(str(next(iter(raw[key.attr_name].values()))) for key in _keys_of(model)))


def _keys_of(model: type[PortalModel]) -> list[Attribute[Any]]:
    """Hash key, and range key where there is one."""
    keys = [attribute for attribute in model.get_attributes().values() if attribute.is_hash_key or attribute.is_range_key]
    return sorted(keys, key=lambda key: not key.is_hash_key)


def _unreadable(model: type[PortalModel], key: str, error: Exception) -> Unreadable:
    return Unreadable(table=model.base_table_name, key=key, why=str(error) or type(error).__name__, is_newer=isinstance(error, NewerItem))


def _is_key(value: str | int) -> bool:
    """Whether any item can lie under it. DynamoDB refuses to look for the others, and that is no failure of the store."""
    if not isinstance(value, str):
        return True
    try:
        return 0 < len(value.encode()) <= _LONGEST_KEY_BYTES
    except UnicodeEncodeError:
        return False
