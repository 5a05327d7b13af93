"""moto's inner state: the same ids and times at a replay as at the first call, and the items of its tables."""

from __future__ import annotations

import base64
import datetime as dt
import types
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import moto.core.utils
from moto.core import DEFAULT_ACCOUNT_ID
from moto.dynamodb.models import dynamodb_backends
from moto.dynamodb.models.dynamo_type import DynamoType, Item
from moto.dynamodb.models.table import Table
from moto.moto_api._internal import mock_random

Images = dict[str, dict[str, list[dict[str, Any]]]]

_pinned: dt.datetime | None = None


@contextmanager
def pinned(*, seed: int, at: float) -> Iterator[None]:
    """What moto makes inside has ids from ``seed`` and times ``at`` (epoch seconds). The caller holds the lock in front of moto."""
    global _pinned
    moto.core.utils.datetime = _clockwork  # type: ignore[assignment]
    mock_random.seed(seed)
    _pinned = dt.datetime.fromtimestamp(at, dt.UTC)
    try:
        yield
    finally:
        _pinned = None


class _Datetime(dt.datetime):
    @classmethod
    def now(cls, tz: dt.tzinfo | None = None) -> dt.datetime:  # type: ignore[override]
        # moto takes every time from moto.core.utils.utcnow, and that asks here.
        return _pinned.astimezone(tz) if _pinned is not None else dt.datetime.now(tz)


_clockwork = types.SimpleNamespace(**(vars(dt) | {"datetime": _Datetime}))


def item_images(region: str, operation: str, payload: dict[str, Any]) -> Images:
    """The items that a write to DynamoDB named, as they stand now: ``{table: {"put": [item], "delete": [key]}}``."""
    backend = dynamodb_backends[DEFAULT_ACCOUNT_ID][region]
    images: Images = {}
    for table_name, attributes in _named(operation, payload):
        table = backend.get_table(table_name)
        key = {name: attributes[name] for name in (table.hash_key_attr, table.range_key_attr) if name}
        item = backend.get_item(table_name, key)
        of_table = images.setdefault(table.name, {"put": [], "delete": []})
        if item is None:
            of_table["delete"].append(key)
        else:
            of_table["put"].append(_image(item))
    return images


def restore_images(region: str, images: Images) -> None:
    """Make the items as the images have them. Raises ``KeyError`` for a table that does not exist."""
    backend = dynamodb_backends[DEFAULT_ACCOUNT_ID][region]
    for table_name, of_table in images.items():
        table = backend.tables[table_name]
        for attributes in of_table["put"]:
            _put(table, attributes)
        for key in of_table["delete"]:
            backend.delete_item(table_name, key)


def all_images() -> Iterator[tuple[str, Images]]:
    """Every item of every table, by region, a few hundred to a piece."""
    for region, backend in dynamodb_backends[DEFAULT_ACCOUNT_ID].items():
        for name, table in backend.tables.items():
            items = [_image(item) for item in table.all_items()]
            for start in range(0, len(items), 200):
                yield region, {name: {"put": items[start : start + 200], "delete": []}}


def _named(operation: str, payload: dict[str, Any]) -> Iterator[tuple[str, dict[str, Any]]]:
    if operation == "BatchWriteItem":
        for table_name, writes in payload["RequestItems"].items():
            for write in writes:
                yield table_name, write["PutRequest"]["Item"] if "PutRequest" in write else write["DeleteRequest"]["Key"]
    elif operation == "TransactWriteItems":
        for step in payload["TransactItems"]:
            for verb, action in step.items():
                if verb != "ConditionCheck":
                    yield action["TableName"], action.get("Item") or action["Key"]
    else:
        yield payload["TableName"], payload.get("Item") or payload["Key"]


def _image(item: Item) -> dict[str, Any]:
    return {name: wire(value) for name, value in item.attrs.items()}


def wire(value: Any) -> Any:
    """A value as it came over the wire. moto's own way to JSON leaves bytes in nested values, and decodes them twice."""
    if isinstance(value, DynamoType):
        return {value.type: wire(value.value)}
    if isinstance(value, dict):
        return {name: wire(inner) for name, inner in value.items()}
    if isinstance(value, (list, set)):
        return [wire(inner) for inner in value]
    return base64.b64encode(value).decode() if isinstance(value, bytes) else value


def _put(table: Table, attributes: dict[str, Any]) -> None:
    hash_key = DynamoType(attributes[table.hash_key_attr])
    range_key = DynamoType(attributes[table.range_key_attr]) if table.range_key_attr else None
    item = Item(hash_key, range_key, {})
    for name, value in attributes.items():
        # Past moto's own size check, which looks at the whole item for every attribute; it passed when it was written.
        dict.__setitem__(item.attrs, name, DynamoType(value))
    if range_key is not None:
        table.items[hash_key][range_key] = item
    else:
        table.items[hash_key] = item  # type: ignore[assignment]
