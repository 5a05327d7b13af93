"""The usual reads and writes of items, done straight on moto's tables: a tenth of what moto takes for them.

Whatever is unusual, every refusal and every fault is left for moto to answer, which finds everything as it was.
``tests/unit/test_quick_moto.py`` compares the answers with those of moto as it comes.
"""

from __future__ import annotations

import copy
import functools
import json
import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from moto.core import DEFAULT_ACCOUNT_ID
from moto.dynamodb.models import DynamoDBBackend, dynamodb_backends
from moto.dynamodb.models.dynamo_type import DynamoType, Item, LimitedSizeDict
from moto.dynamodb.models.table import SecondaryIndex, Table

from accessportal.twin import inprocess
from tests.quick_expressions import (
    Attrs,
    Unusual,
    condition_of,
    is_equal,
    is_number,
    key_terms_of,
    projection_of,
    sortable,
    typed,
    update_of,
)

Names = tuple[tuple[str, str], ...]
_BYTES = re.compile(r'"BS?": ["\[]')
_MOST_BYTES = 400_000
_LONGEST_KEY = 1_024
_MOST_STEPS = 100
_DynamoDB: Any = vars(inprocess)["_DynamoDB"]
_Item: Any = Item
_Table: Any = Table
_answer = _DynamoDB.answer
_copy_item, _size = _Item.__deepcopy__, _Item.size
_update = DynamoDBBackend.update_item
_NO_CONDITION = (lambda _attrs, _values: True, frozenset[str](), frozenset[str]())


class Straight(str):
    """The JSON of an answer that nobody has to look through again."""

    __slots__ = ()


def quicken_dynamodb() -> None:
    """For the rest of this process. Items are never changed from now on: another one takes its place. So whoever copies tables shares
    their items."""
    _DynamoDB.answer = _quick_answer
    _Item.__deepcopy__, _Table.__deepcopy__, _Item.size = _same, _copy_table, _item_size
    DynamoDBBackend.update_item = _update_copy  # type: ignore[method-assign]


def _quick_answer(self: Any, request: Any, target: str) -> Any:
    act = _ACTS.get(target.rpartition(".")[2])
    if act is not None:
        try:
            told = act(_backend(request.url), json.loads(request.body))
            # Bytes are for botocore to read.
            return 200, {}, told if _BYTES.search(told) else Straight(told)
        except (Unusual, AttributeError, LookupError, TypeError, ValueError):
            pass
    return _answer(self, request, target)


def _item_size(self: Item) -> int:
    size: int | None = vars(self).get("bytes")
    if size is None:
        vars(self)["bytes"] = size = _size(self)
    return size


def _same(self: Item, _memo: Any) -> Item:
    return self


def _copy_table(self: Table, _memo: Any) -> Table:
    copied: Table = object.__new__(_Table)
    vars(copied).update({name: copy.copy(value) if isinstance(value, dict | list) else value for name, value in vars(self).items()})
    if self.range_key_attr:
        for key, row in copied.items.items():
            copied.items[key] = dict(row)
    return copied


def _update_copy(self: DynamoDBBackend, table_name: str, key: dict[str, dict[str, Any]], *args: Any, **more: Any) -> Item:
    """moto changes the item itself."""
    table = self.tables.get(table_name)
    if table is not None and all(name in key for name in table.table_key_attrs):
        hash_key, *range_keys = (DynamoType(key[name]) for name in (table.hash_key_attr, table.range_key_attr) if name)
        place = _Place(table, hash_key, range_keys[0] if range_keys else None)
        if (item := place.find()) is not None:
            place.put(_copy_item(item, {}))
    return _update(self, table_name, key, *args, **more)


@functools.cache
def _region(url: str) -> str:
    found = re.search(r"dynamodb\.([a-z0-9-]+)\.amazonaws", url)
    if found is None:
        raise Unusual
    return found[1]


def _backend(url: str) -> DynamoDBBackend:
    backends: Any = dynamodb_backends[DEFAULT_ACCOUNT_ID]
    return dict.get(backends, _region(url)) or backends[_region(url)]


def _only(params: Mapping[str, Any], known: frozenset[str]) -> None:
    if not known.issuperset(params):
        raise Unusual


def _table(backend: DynamoDBBackend, params: Mapping[str, Any]) -> Table:
    table = backend.tables.get(params["TableName"])
    if table is None or table.stream_shard is not None:
        raise Unusual
    return table


@dataclass(frozen=True, slots=True)
class _Place:
    """Where an item lies, or would."""

    table: Table
    hash_key: DynamoType
    range_key: DynamoType | None

    def find(self) -> Item | None:
        items: dict[DynamoType, Any] = self.table.items
        found: Item | None = items.get(self.hash_key) if self.range_key is None else items.get(self.hash_key, {}).get(self.range_key)
        return found

    def put(self, item: Item | None) -> None:
        items: Any = self.table.items if self.range_key is None else self.table.items[self.hash_key]
        key = self.hash_key if self.range_key is None else self.range_key
        if item is None:
            items.pop(key, None)
        else:
            items[key] = item


def _place(table: Table, key: Mapping[str, Any], *, is_item: bool = False) -> _Place:
    names = [name for name in (table.hash_key_attr, table.range_key_attr) if name]
    if not is_item and len(key) != len(names):
        raise Unusual
    found = []
    for name, kind in zip(names, (table.hash_key_type, table.range_key_type), strict=False):
        value = key.get(name, {}).get(kind)
        if kind not in ("S", "N") or not value or len(value) > _LONGEST_KEY or (kind == "N" and not is_number(value)):
            raise Unusual
        found.append(typed(kind, value))
    return _Place(table, found[0], found[1] if len(found) > 1 else None)


def _value(wire: dict[str, Any]) -> DynamoType:
    """As it came over the wire."""
    if len(wire) != 1:
        raise Unusual
    ((kind, value),) = wire.items()
    if kind == "S" or kind == "BOOL" or kind == "B" or (kind == "NULL" and value is True):
        return typed(kind, value)
    if kind == "N":
        if not is_number(value):
            raise Unusual
        return typed(kind, value)
    if kind == "M":
        return typed(kind, {name: _value(inner) for name, inner in value.items()})
    if kind == "L":
        return typed(kind, [_value(inner) for inner in value])
    if (kind == "SS" or kind == "BS" or (kind == "NS" and all(map(is_number, value)))) and value and len(set(value)) == len(value):
        return typed(kind, list(value))
    raise Unusual


def _check_index_keys(table: Table, changed: Mapping[str, DynamoType]) -> None:
    """moto has more to say of keys that are empty or of another type."""
    for one in table.attr:
        value = changed.get(one["AttributeName"])
        if value is not None and (value.type != one["AttributeType"] or value.value == "" or len(value.value) > _LONGEST_KEY):
            raise Unusual


def _item(place: _Place, attrs: Mapping[str, DynamoType]) -> Item:
    size = sum(len(name) + value.size() for name, value in attrs.items())
    if size > _MOST_BYTES:
        raise Unusual
    item: Item = object.__new__(Item)
    vars(item)["bytes"] = size
    item.hash_key, item.range_key = place.hash_key, place.range_key
    item.attrs = LimitedSizeDict.__new__(LimitedSizeDict)
    dict.update(item.attrs, attrs)
    return item


def _texts(item: Item) -> dict[str, str]:
    """The JSON of each attribute, kept with the item: it is never changed, another one takes its place."""
    kept: dict[str, str] | None = vars(item).get("texts")
    if kept is None:
        kept = {name: f"{json.dumps(name)}: {json.dumps(_wire(value))}" for name, value in item.attrs.items()}
        vars(item)["texts"] = kept
    return kept


def _text(item: Item, names: Iterable[str] | None = None) -> str:
    texts = _texts(item)
    return f"{{{', '.join(texts.values() if names is None else [texts[name] for name in names if name in texts])}}}"


def _wire(value: DynamoType) -> dict[str, Any]:
    kind, inner = value.type, value.value
    if kind == "M":
        return {kind: {name: _wire(one) for name, one in inner.items()}}
    if kind == "L":
        return {kind: [_wire(one) for one in inner]}
    if isinstance(inner, bytes):
        raise Unusual
    return {kind: inner}


def _names(params: Mapping[str, Any]) -> Names:
    return tuple(params.get("ExpressionAttributeNames", {}).items())


def _values(params: Mapping[str, Any]) -> dict[str, DynamoType]:
    given = params.get("ExpressionAttributeValues")
    if given == {}:
        raise Unusual
    return {name: _value(value) for name, value in (given or {}).items()}


def _write(backend: DynamoDBBackend, verb: str, params: Mapping[str, Any]) -> tuple[_Place, Item | None, Item | None]:
    """Where it is written, what was there, and what is to be there; nothing is written yet."""
    table = _table(backend, params)
    place = _place(table, params["Item"] if verb == "Put" else params["Key"], is_item=verb == "Put")
    names, values = _names(params), _values(params)
    text = params.get("ConditionExpression")
    holds, used_names, used_values = _NO_CONDITION if text is None else condition_of(text, names)
    changes = None
    if verb == "Update":
        changes = update_of(params["UpdateExpression"], names)
        used_names, used_values = used_names | changes.names, used_values | changes.values
    if used_names != {name for name, _ in names} or used_values != values.keys():
        raise Unusual
    old = place.find()
    old_attrs: dict[str, DynamoType] = old.attrs if old is not None else {}
    if not holds(old_attrs, values):
        raise Unusual
    if verb == "Delete":
        return place, old, None
    if verb == "ConditionCheck":
        return place, old, old
    if changes is None:
        new = {name: _value(value) for name, value in params["Item"].items()}
        _check_index_keys(table, new)
        return place, old, _item(place, new)
    new = dict(old_attrs) if old is not None else {name: _value(value) for name, value in params["Key"].items()}
    if not changes.roots.isdisjoint((table.hash_key_attr, table.range_key_attr)):
        raise Unusual
    changes.apply(old_attrs, new, values)
    _check_index_keys(table, {name: new[name] for name in changes.roots if name in new})
    return place, old, _item(place, new)


_COMMON = frozenset(
    (
        *("TableName", "Key", "ConditionExpression", "ExpressionAttributeNames", "ExpressionAttributeValues"),
        *("ReturnValuesOnConditionCheckFailure", "ReturnValues", "ReturnConsumedCapacity", "ReturnItemCollectionMetrics"),
    )
)
_KNOWN = {
    "Put": (_COMMON - {"Key"}) | {"Item"},
    "Update": _COMMON | {"UpdateExpression"},
    "Delete": _COMMON,
    "ConditionCheck": _COMMON,
}


def _write_one(verb: str, units: str) -> Callable[[DynamoDBBackend, dict[str, Any]], str]:
    def act(backend: DynamoDBBackend, params: dict[str, Any]) -> str:
        _only(params, _KNOWN[verb])
        returned = params.get("ReturnValues", "NONE")
        if returned not in ("NONE", "ALL_OLD", "ALL_NEW") or (verb != "Update" and returned == "ALL_NEW"):
            raise Unusual
        place, old, new = _write(backend, verb, params)
        shown = {"NONE": None, "ALL_OLD": old, "ALL_NEW": new}[returned]
        told = [] if shown is None else [f'"Attributes": {_text(shown)}']
        # moto tells it of every update.
        told += _units(params if verb != "Update" else {**params, "ReturnConsumedCapacity": "TOTAL"}, units)
        place.put(new)
        return f"{{{', '.join(told)}}}"

    return act


def _units(params: Mapping[str, Any], units: str) -> list[str]:
    capacity = params.get("ReturnConsumedCapacity", "NONE")
    if capacity == "NONE":
        return []
    if capacity != "TOTAL":
        raise Unusual
    return [f'"ConsumedCapacity": {{"TableName": {json.dumps(params["TableName"])}, "CapacityUnits": {units}}}']


_TRANSACTION = frozenset(("TransactItems", "ClientRequestToken", "ReturnConsumedCapacity", "ReturnItemCollectionMetrics"))


def _transact(backend: DynamoDBBackend, params: dict[str, Any]) -> str:
    _only(params, _TRANSACTION)
    steps = params["TransactItems"]
    if len(steps) > _MOST_STEPS:
        raise Unusual
    written = []
    for step in steps:
        ((verb, asked),) = step.items()
        _only(asked, _KNOWN[verb])
        written.append(_write(backend, verb, asked))
    _put_each(written)
    return '{"ConsumedCapacity": [], "ItemCollectionMetrics": {}}'


def _put_each(written: list[tuple[_Place, Item | None, Item | None]]) -> None:
    if len({(place.table.name, place.hash_key, place.range_key) for place, _, _ in written}) != len(written):
        raise Unusual
    for place, _, new in written:
        place.put(new)


_GET = frozenset(("TableName", "Key", "ConsistentRead", "ReturnConsumedCapacity"))


def _get(backend: DynamoDBBackend, params: dict[str, Any]) -> str:
    _only(params, _GET)
    item = _place(_table(backend, params), params["Key"]).find()
    told = [] if item is None else [f'"Item": {_text(item)}']
    return f"{{{', '.join(told + _units(params, '0.5'))}}}"


_BATCH = frozenset(("RequestItems", "ReturnConsumedCapacity"))
_BATCH_OF_ONE = frozenset(("Keys", "ConsistentRead"))
_MOST_KEYS = 100
_MOST_BYTES_ANSWERED = 16 * 1024 * 1024


def _batch_get(backend: DynamoDBBackend, params: dict[str, Any]) -> str:
    _only(params, _BATCH)
    ((name, asked),) = params["RequestItems"].items()
    _only(asked, _BATCH_OF_ONE)
    table = _table(backend, {"TableName": name})
    places = [_place(table, key) for key in asked["Keys"]]
    if len({(place.hash_key, place.range_key) for place in places}) != len(places) or len(places) > _MOST_KEYS:
        raise Unusual
    items = [item for place in places if (item := place.find()) is not None]
    if sum(item.size() for item in items) > _MOST_BYTES_ANSWERED:
        raise Unusual
    told = ", ".join(map(_text, items))
    # moto has an odd answer for whoever wants the total.
    is_told = params.get("ReturnConsumedCapacity", "NONE") == "NONE"
    units = f'{{"TableName": {json.dumps(name)}, "CapacityUnits": {len(places)}.0}}' if is_told else ""
    return f'{{"Responses": {{{json.dumps(name)}: [{told}]}}, "UnprocessedKeys": {{}}, "ConsumedCapacity": [{units}]}}'


_BATCH_VERBS = {"PutRequest": ("Put", "Item"), "DeleteRequest": ("Delete", "Key")}


def _batch_write(backend: DynamoDBBackend, params: dict[str, Any]) -> str:
    _only(params, _BATCH)
    written = []
    for name, steps in params["RequestItems"].items():
        for step in steps:
            ((kind, asked),) = step.items()
            verb, what = _BATCH_VERBS[kind]
            written.append(_write(backend, verb, {"TableName": name, what: asked[what]}))
    _put_each(written)
    units = [{"TableName": name, "CapacityUnits": 1.0, "Table": {"CapacityUnits": 1.0}} for name in params["RequestItems"]]
    return f'{{"ConsumedCapacity": {json.dumps(units)}, "ItemCollectionMetrics": {{}}, "UnprocessedItems": {{}}}}'


_READ_MANY = frozenset(
    (
        *("TableName", "IndexName", "Limit", "ExclusiveStartKey", "FilterExpression", "ProjectionExpression", "ExpressionAttributeNames"),
        *("ExpressionAttributeValues", "Select", "ConsistentRead", "ReturnConsumedCapacity"),
    )
)
_QUERY = _READ_MANY | {"KeyConditionExpression", "ScanIndexForward"}
_SCAN = _READ_MANY | {"Segment", "TotalSegments"}
_MOST_READ = 1_000_000


def _query(backend: DynamoDBBackend, params: dict[str, Any]) -> str:
    _only(params, _QUERY)
    table, index_name = _table(backend, params), params.get("IndexName")
    terms, used_names, used_values = key_terms_of(params["KeyConditionExpression"], _names(params))
    values = _values(params)
    index = table.get_index(index_name) if index_name else None
    if index in table.global_indexes and params.get("ConsistentRead"):
        raise Unusual
    schema = index.schema if index else table.schema
    hash_name, *range_names = (key["AttributeName"] for kind in ("HASH", "RANGE") for key in schema if key["KeyType"] == kind)
    (hash_term,) = (term for term in terms if term.name == hash_name and term.equals)
    others = [term for term in terms if term is not hash_term]
    if len(range_names) > 1 or any(term.name not in range_names for term in others) or len(others) > 1:
        raise Unusual
    wanted = values[hash_term.equals]
    keys = [name for name in (table.hash_key_attr, table.range_key_attr) if name]
    # An index without a range key is ordered by the table's.
    order = [*(range_names or keys[1:]), *(keys if index else ())]
    rows = _of_index(table, hash_name, wanted, range_names) if index else _of_key(table, wanted)
    rows.sort(key=lambda item: [sortable(item.attrs[name]) for name in order], reverse=not params.get("ScanIndexForward", True))
    rows = _after(rows, params.get("ExclusiveStartKey"), order, is_forward=params.get("ScanIndexForward", True))
    found, size, last = list[Item](), 0, None
    for item in rows:
        if len(found) == params.get("Limit") or size + item.size() > _MOST_READ:
            last = found[-1]
            break
        if not others or others[0].holds(item.attrs, values):
            found.append(item)
            size += item.size()
    keys += [key["AttributeName"] for key in schema] if index else []
    last_key = None if last is None else {name: _wire(last.attrs[name]) for name in keys}
    return _page(table, params, found, last_key, (used_names, used_values), index)


def _of_key(table: Table, wanted: DynamoType) -> list[Item]:
    found: Any = table.items.get(wanted)
    return [] if not found else list(found.values()) if table.range_key_attr else [found]


def _of_index(table: Table, hash_name: str, wanted: DynamoType, range_names: list[str]) -> list[Item]:
    rows: Any = table.items.values()
    items = (item for row in rows for item in row.values()) if table.range_key_attr else rows
    return [
        item
        for item in items
        if (value := item.attrs.get(hash_name)) is not None and is_equal(value, wanted) and all(name in item.attrs for name in range_names)
    ]


def _after(rows: list[Item], start: dict[str, Any] | None, order: list[str], *, is_forward: bool) -> list[Item]:
    if start is None:
        return rows
    place = [sortable(_value(start[name])) for name in order]
    for number, item in enumerate(rows):
        here = [sortable(item.attrs[name]) for name in order]
        if here > place if is_forward else here < place:
            return rows[number:]
    return []


def _page(
    table: Table,
    params: dict[str, Any],
    found: list[Item],
    last_key: dict[str, Any] | None,
    used: tuple[frozenset[str], frozenset[str]],
    index: SecondaryIndex | None,
) -> str:
    names, values = _names(params), _values(params)
    used_names, used_values = used
    shown = _projected(index)
    matching = found
    if "FilterExpression" in params:
        holds, filter_names, filter_values = condition_of(params["FilterExpression"], names)
        used_names, used_values = used_names | filter_names, used_values | filter_values
        matching = [item for item in found if holds(_part(item, shown), values)]
    if "ProjectionExpression" in params:
        asked, projection_names = projection_of(params["ProjectionExpression"], names)
        used_names |= projection_names
        shown = asked if shown is None else tuple(name for name in asked if name in shown)
    select = params.get("Select")
    if used_names != {name for name, _ in names} or used_values != values.keys() or select not in (None, "COUNT"):
        raise Unusual
    told = [f'"Count": {len(matching)}, "ScannedCount": {len(found)}']
    if select is None:
        told.append(f'"Items": [{", ".join(_text(item, shown) for item in matching)}]')
    elif "ProjectionExpression" in params:
        raise Unusual
    if last_key is not None:
        told.append(f'"LastEvaluatedKey": {json.dumps(last_key)}')
    return f"{{{', '.join(told + _units(params, '1.0'))}}}"


def _projected(index: SecondaryIndex | None) -> tuple[str, ...] | None:
    """Which attributes the index holds; all are ``None``."""
    if index is None or not index.projection or index.projection.get("ProjectionType") not in ("KEYS_ONLY", "INCLUDE"):
        return None
    more = index.projection.get("NonKeyAttributes", []) if index.projection["ProjectionType"] == "INCLUDE" else []
    return tuple(dict.fromkeys([*index.table_key_attrs, *index.schema_key_attrs, *more]))


def _part(item: Item, names: tuple[str, ...] | None) -> Attrs:
    return item.attrs if names is None else {name: item.attrs[name] for name in names if name in item.attrs}


def _scan(backend: DynamoDBBackend, params: dict[str, Any]) -> str:
    _only(params, _SCAN)
    table, index_name = _table(backend, params), params.get("IndexName")
    index = table.get_index(index_name) if index_name else None
    if params.get("ConsistentRead") and index:
        raise Unusual
    segments: Any = (params.get("Segment"), params.get("TotalSegments"))
    if (segments[0] is None) is not (segments[1] is None) or (segments[0] is not None and segments[0] >= segments[1]):
        raise Unusual
    start: Any = params.get("ExclusiveStartKey")
    found, _, last = table.scan({}, params.get("Limit"), start, index_name=index_name, segments=segments)  # type: ignore[arg-type]
    last_key = None if last is None else {name: _wire(value) for name, value in last.items()}
    return _page(table, params, found, last_key, (frozenset(), frozenset()), index)


_ACTS: dict[str, Callable[[DynamoDBBackend, dict[str, Any]], str]] = {
    "BatchGetItem": _batch_get,
    "BatchWriteItem": _batch_write,
    "DeleteItem": _write_one("Delete", "1.0"),
    "GetItem": _get,
    "PutItem": _write_one("Put", "1.0"),
    "Query": _query,
    "Scan": _scan,
    "TransactWriteItems": _transact,
    "UpdateItem": _write_one("Update", "0.5"),
}
