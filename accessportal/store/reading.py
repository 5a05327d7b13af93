"""Reads: a strong get, and pages of a query with signed cursors."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, TypeVar

from pynamodb.exceptions import AttributeDeserializationError, DoesNotExist, PynamoDBException
from pynamodb.expressions.condition import Condition
from pynamodb.indexes import Index

from accessportal.kernel.errors import Unavailable
from accessportal.kernel.pages import Page
from accessportal.store.base import PortalModel, unavailable
from accessportal.store.cursors import read_cursor, sign_cursor

M = TypeVar("M", bound=PortalModel)
R = TypeVar("R")
RawItem = Mapping[str, Any]
"""An item as DynamoDB sends it: ``{"status": {"S": "ACTIVE"}, …}``."""

_LONGEST_KEY_BYTES = 2048


def get_item(model: type[M], hash_key: str, range_key: str | int | None = None) -> M | None:
    """The item, strongly read, or ``None`` when it does not exist.

    :raises Unavailable: when the store did not answer; never ``None`` for that.
    """
    if not _is_key(hash_key):
        return None
    try:
        return model.get(hash_key, range_key, consistent_read=True)
    except DoesNotExist:
        return None
    except AttributeDeserializationError as error:
        raise _unreadable(model, str(hash_key), error) from error
    except PynamoDBException as error:
        raise unavailable(error) from error


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

    ``unreadable`` stands in for ``convert`` where an item is not what its class says: somebody else wrote it. It is for
    those who must go on past such an item, and must report it.

    :raises InvalidRequest: for a cursor that is not ours.
    :raises Unavailable: when the store did not answer, or (without ``unreadable``) an item can't be read; it is named.
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
    items = tuple(_read(model, raw, convert, unreadable) for raw in raw_items)
    return Page(items=items, next_cursor=sign_cursor(pattern, last_key))


def _read(model: type[M], raw: RawItem, convert: Callable[[M], R], unreadable: Callable[[RawItem], R] | None) -> R:
    try:
        return convert(model.from_raw_data(dict(raw)))
    except (ArithmeticError, AttributeError, LookupError, TypeError, ValueError) as error:
        if unreadable is not None:
            return unreadable(raw)
        key = next(iter(raw[model._hash_keyname or ""].values()))
        raise _unreadable(model, str(key), error) from error


def _unreadable(model: type[PortalModel], key: str, error: Exception) -> Unavailable:
    return Unavailable(
        f"The item {key} of the table {model.base_table_name} can't be read ({error}). Somebody else has changed it; mend it by hand.",
        code="item_unreadable",
    )


def _is_key(value: str | int) -> bool:
    """Whether any item can lie under it. DynamoDB refuses to look for the others, and that is no failure of the store."""
    if not isinstance(value, str):
        return True
    try:
        return 0 < len(value.encode()) <= _LONGEST_KEY_BYTES
    except UnicodeEncodeError:
        return False
