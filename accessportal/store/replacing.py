"""Replacing texts in every item of a table: a walk, for what is so rare that it may cost one.

Each item is written by itself, if it is as it was read; what was changed meanwhile is left to the next walk. An item whose key changes
is moved, in one transaction.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from pynamodb.connection.base import BOTOCORE_EXCEPTIONS
from pynamodb.exceptions import PynamoDBException, UpdateError

from accessportal.kernel.errors import Conflict
from accessportal.store.base import PortalModel, code_of, connection, unavailable
from accessportal.store.reading import RawItem, keys_of

Amend = Callable[[dict[str, Any]], dict[str, Any]]
_REFUSED = frozenset({"ConditionalCheckFailedException", "TransactionCanceledException"})


@dataclass(frozen=True, slots=True)
class Replaced:
    """Of one table: ``read`` items, ``found`` of which had to be changed, ``written`` of which were."""

    read: int = 0
    found: int = 0
    written: int = 0


def replace_in_table(model: type[PortalModel], amend: Amend, *, is_dry: bool, may_overwrite: bool = True) -> Replaced:
    """Write each item of the table as ``amend`` returns it, unless ``is_dry``. ``may_overwrite``: whether an item may be moved to a key
    that is taken.

    :raises Conflict: for an item of a newer version of the portal, which this one leaves alone.
    """
    read = found = written = 0
    try:
        for page in model.scan(consistent_read=True).page_iter:
            for raw in page["Items"]:
                read += 1
                after = amend(raw)
                if after == raw:
                    continue
                if int(raw.get("schema_version", {}).get("N", "0")) > model.known_schema:
                    words = f"{model.base_table_name} has items of a newer version of the portal. Use that one."
                    raise Conflict(words, code="newer_version")
                found += 1
                written += not is_dry and _write(model, raw, after, may_overwrite=may_overwrite)
    except PynamoDBException as error:
        raise unavailable(error) from error
    return Replaced(read, found, written)


def replaced_in_raw(value: Mapping[str, Any], replace: Callable[[str], str]) -> dict[str, Any]:
    """An attribute's value as DynamoDB sends it, with each text in it replaced."""
    ((kind, inner),) = value.items()
    if kind == "S":
        return {kind: replace(inner)}
    if kind == "SS":
        return {kind: sorted({replace(one) for one in inner})} if any(replace(one) != one for one in inner) else dict(value)
    if kind == "L":
        return {kind: [replaced_in_raw(one, replace) for one in inner]}
    if kind == "M":
        return {kind: {replace(name): replaced_in_raw(one, replace) for name, one in inner.items()}}
    return dict(value)


def _write(model: type[PortalModel], before: RawItem, after: RawItem, *, may_overwrite: bool) -> bool:
    """Whether the item was as it was read, and is written."""
    keys = [attribute.attr_name for attribute in keys_of(model).values()]
    changed = sorted(name for name in before.keys() | after.keys() if before.get(name) != after.get(name))
    names = {f"#n{number}": name for number, name in enumerate(changed)}
    old = {f":o{number}": before[name] for number, name in enumerate(changed) if name in before}
    is_as_read = " AND ".join(
        f"#n{number} = :o{number}" if name in before else f"attribute_not_exists(#n{number})" for number, name in enumerate(changed)
    )
    table = {"TableName": model.Meta.table_name}
    key = {"Key": {name: before[name] for name in keys}}
    conditions = {"ConditionExpression": is_as_read, "ExpressionAttributeNames": names}
    if not set(changed) & set(keys):
        new = {f":v{number}": after[name] for number, name in enumerate(changed)}
        sets = ", ".join(f"#n{number} = :v{number}" for number in range(len(changed)))
        return _sent(
            "UpdateItem", {**table, **key, **conditions, "UpdateExpression": f"SET {sets}", "ExpressionAttributeValues": old | new}
        )
    put: dict[str, Any] = {**table, "Item": dict(after)}
    if not may_overwrite:
        put |= {"ConditionExpression": "attribute_not_exists(#k)", "ExpressionAttributeNames": {"#k": keys[0]}}
    delete = {**table, **key, **conditions, "ExpressionAttributeValues": old}
    return _sent("TransactWriteItems", {"TransactItems": [{"Put": put}, {"Delete": delete}]})


def _sent(operation: str, arguments: dict[str, Any]) -> bool:
    try:
        connection().dispatch(operation, arguments)
    except BOTOCORE_EXCEPTIONS as cause:
        error = UpdateError("An item was not written", cause)
        if code_of(error) in _REFUSED:
            return False
        raise unavailable(error) from cause
    return True
