"""Reads: a strong get, and pages of a query with signed cursors."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

from pynamodb.exceptions import DoesNotExist, PynamoDBException
from pynamodb.expressions.condition import Condition
from pynamodb.indexes import Index

from accessportal.kernel.pages import Page
from accessportal.store.base import PortalModel, unavailable
from accessportal.store.cursors import read_cursor, sign_cursor

M = TypeVar("M", bound=PortalModel)
R = TypeVar("R")


def get_item(model: type[M], hash_key: str, range_key: str | int | None = None) -> M | None:
    """The item, strongly read, or ``None`` when it does not exist.

    :raises Unavailable: when the store did not answer; never ``None`` for that.
    """
    try:
        return model.get(hash_key, range_key, consistent_read=True)
    except DoesNotExist:
        return None
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
) -> Page[R]:
    """One request to the engine: at most ``limit`` items of a table or index under ``hash_key``, converted.

    ``pattern`` names the query and everything it is bound to (for example ``requests.by_subject:alice@…``); the cursor
    that comes back works with the same pattern alone. A next cursor means that there really is a next item.

    :raises InvalidRequest: for a cursor that is not ours.
    :raises Unavailable: when the store did not answer.
    """
    start = read_cursor(pattern, cursor)
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
    items = tuple(convert(model.from_raw_data(raw)) for raw in raw_items)
    return Page(items=items, next_cursor=sign_cursor(pattern, last_key))
