"""Items as another program, or a mistake, may leave them: each attribute missing, of another type, or absurd."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from accessportal.store.base import PortalModel

Raw = dict[str, Any]
_OTHERS: tuple[Raw, ...] = (
    {"S": "nonsense"},
    {"N": "-1"},
    {"N": "1.5"},
    {"N": "100000000000000000"},
    {"BOOL": True},
    {"L": [{"N": "1"}]},
    {"M": {"x": {"NULL": True}}},
    {"SS": ["nonsense"]},
    {"NULL": True},
)


def damaged(model: type[PortalModel], item: Raw) -> Iterator[tuple[str, Raw]]:
    """Each way to spoil one attribute of ``item`` (as DynamoDB sends it), and what is in it, with the name of the spoilt one.

    Its keys stay. DynamoDB refuses an index's key of another type (moto does not), so those are missing or absurd alone.
    """
    keys = {attribute.attr_name for attribute in model.get_attributes().values() if attribute.is_hash_key or attribute.is_range_key}
    indexed = {part["AttributeName"] for index in model._get_schema()["global_secondary_indexes"] for part in index["key_schema"]}
    for name in sorted(item.keys() - keys):
        for value in _spoilt(item[name]):
            if name in indexed and value is not None and value.keys() != item[name].keys():
                continue
            yield name, {**{other: kept for other, kept in item.items() if other != name}, **({} if value is None else {name: value})}


def _spoilt(value: Raw) -> Iterator[Raw | None]:
    yield None
    yield from (other for other in _OTHERS if other != value)
    if "M" in value:
        for name, inner in value["M"].items():
            rest = {other: kept for other, kept in value["M"].items() if other != name}
            yield from ({"M": rest if one is None else {**rest, name: one}} for one in _spoilt(inner))
    if value.get("L"):
        first, *more = value["L"]
        yield from ({"L": more if one is None else [one, *more]} for one in _spoilt(first))
