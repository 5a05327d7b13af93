"""Items and records: one table's items become records, and records items, by the annotations of the record.

A field lies in the attribute of its name, and has its default where that is missing. A record in a record lies in a map; where the item
has no attribute of that name, its fields lie beside the others. A field with a default and no attribute is not of the item. What an
annotation does not allow can't be read (docs/decisions/0057-records-and-audited-writes.md).
"""

from __future__ import annotations

import collections.abc
import dataclasses
import enum
import types
import typing
from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import datetime
from typing import Any, Generic, TypeVar

from pynamodb.attributes import Attribute
from pynamodb.expressions.condition import Condition
from pynamodb.expressions.update import Action

from accessportal.kernel.clock import Precise, from_epoch, precise, to_epoch
from accessportal.kernel.pages import Unreadable
from accessportal.store.base import PortalModel
from accessportal.store.reading import BROKEN, K, keys_of, read_item, read_items
from accessportal.store.transactions import Change, Insert, Remove

M = TypeVar("M", bound=PortalModel)
R = TypeVar("R")
Key = tuple[Any, ...]
# No number of ours is larger, and added to any moment it is one that a clock knows.
_LARGEST = 10**10
_NEEDED = object()


@dataclasses.dataclass(frozen=True, slots=True)
class Form:
    """How values of one type lie in an attribute: ``load`` judges and reads one, ``store`` is its way back."""

    load: Callable[[Any], Any]
    store: Callable[[Any], Any]
    is_optional: bool = False


class Records(Generic[M, R]):
    """The items of ``model`` that are records of the class ``record``.

    ``key``: of a record, where it is not in the fields of the keys' names. ``also``: attributes that follow from a record, for indexes.
    ``check`` raises :class:`ValueError` for what annotations can't tell. ``unchanged``: fields that tell together that an item is as it was
    read. ``together``: groups of fields of which all are written where one differs, because some are also written without a version.
    """

    def __init__(
        self,
        model: type[M],
        record: type[R],
        *,
        key: Callable[[R], Key] | None = None,
        also: Callable[[R], Mapping[str, Any]] = lambda _record: {},
        check: Callable[[R], object] = lambda _record: None,
        unchanged: Sequence[str] = ("version",),
        together: Sequence[Sequence[str]] = (),
    ) -> None:
        self.model = model
        self._key_names = list(keys_of(model))
        self._key = key
        self._attributes: dict[str, Attribute[Any]] = dict(model.get_attributes())
        self._shape = _Shape(record, self._attributes)
        self._also = also
        self._check = check
        self._unchanged = unchanged
        self._together = [frozenset(group) for group in together]

    def record(self, item: M) -> R:
        """:raises ValueError: for an item that is no such record, naming the attribute."""
        record: R = self._shape.load(lambda name: getattr(item, name))
        self._check(record)
        return record

    def get(self, *key: Any) -> R | None:
        """Strongly read.

        :raises Unavailable: when the store did not answer, or the item can't be read; it is named.
        """
        return read_item(self.model, self.record, *key)

    def get_many(self, keys: Iterable[K], *, past: Callable[[Unreadable], object] | None = None) -> dict[K, R]:
        """Those that exist, by key, strongly read; ``past`` as in :func:`~accessportal.kernel.pages.every`."""
        return read_items(self.model, self.record, keys, past=past)

    def kept(self, record: R) -> R:
        """The record as it will be read when it is written: moments in the resolution of their attributes."""
        values = self._shape.store(record)
        kept: R = self._shape.load(values.__getitem__)
        return kept

    def insertion(self, record: R, **unread: Any) -> Insert:
        """The step that writes a new item; ``unread`` are attributes that are in no record."""
        named = dict(zip(self._key_names, self._key(record), strict=True)) if self._key else {}
        return Insert(self.model(**{**self.values(record), **named, **unread}))

    def change(self, before: R, after: R) -> Change:
        """The step that writes what differs, if the item is as it was read."""
        hash_key, range_key = self._key_of(before)
        return Change(self.model, hash_key, self._differences(before, after), self.is_unchanged(before), range_key)

    def removal(self, record: R) -> Remove:
        """The step that deletes the item, if it is as it was read."""
        hash_key, range_key = self._key_of(record)
        return Remove(self.model, hash_key, self.is_unchanged(record), range_key)

    def is_unchanged(self, record: R) -> Condition:
        """The item is as it was read."""
        values = self._shape.store(record)
        first, *others = (self._equals(name, values[name]) for name in self._unchanged)
        for other in others:
            first &= other
        return first

    def _differences(self, before: R, after: R) -> list[Action]:
        old, new = self.values(before), self.values(after)
        differing = {name for name, value in new.items() if value != old[name]}
        for group in self._together:
            differing |= group if differing & group else set()
        return [self.action(name, new[name]) for name in new if name in differing]

    def action(self, name: str, value: Any) -> Action:
        """The action that sets an attribute, or removes it."""
        attribute = self._attributes[name]
        action: Action = attribute.remove() if value is None else attribute.set(value)
        return action

    def values(self, record: R) -> dict[str, Any]:
        """By attribute; ``None`` for those that are missing then."""
        return {**self._shape.store(record), **self._also(record)}

    def _key_of(self, record: R) -> tuple[Any, Any]:
        key = self._key(record) if self._key else tuple(self._shape.store(record)[name] for name in self._key_names)
        return key[0], key[1] if len(key) > 1 else None

    def _equals(self, name: str, value: Any) -> Condition:
        attribute = self._attributes[name]
        condition: Condition = attribute.does_not_exist() if value is None else attribute == value
        return condition


@dataclasses.dataclass(frozen=True, slots=True)
class _Field:
    """``absent`` is what a missing attribute stands for, ``silent`` the value that is written as a missing one."""

    name: str
    form: Form
    absent: Any
    silent: Any


class _Shape:
    """The fields of a record class, each with its form, in an item or (without ``attributes``) in a map."""

    def __init__(self, record: type[Any], attributes: Mapping[str, Attribute[Any]] | None) -> None:
        self._record = record
        self._beside: dict[str, _Shape] = {}
        self._fields: list[_Field] = []
        hints = typing.get_type_hints(record, include_extras=True)
        for field in (one for one in dataclasses.fields(record) if one.init):
            if attributes is None or field.name in attributes:
                attribute = None if attributes is None else attributes[field.name]
                self._fields.append(_field_of(field, form_of(hints[field.name]), attribute))
            elif field.default is dataclasses.MISSING:
                self._beside[field.name] = _Shape(hints[field.name], attributes)

    def load(self, value_of: Callable[[str], Any]) -> Any:
        given: dict[str, Any] = {name: shape.load(value_of) for name, shape in self._beside.items()}
        for field in self._fields:
            value = value_of(field.name)
            if value is None and field.absent is _NEEDED:
                raise ValueError(f"{field.name} missing")
            given[field.name] = field.absent if value is None else _judged(field, value)
        return self._record(**given)

    def store(self, record: Any) -> dict[str, Any]:
        """By attribute; ``None`` for those that are missing then."""
        stored: dict[str, Any] = {}
        for name, shape in self._beside.items():
            stored |= shape.store(getattr(record, name))
        for field in self._fields:
            value = getattr(record, field.name)
            stored[field.name] = None if value is None or value == field.silent else field.form.store(value)
        return stored


def _field_of(field: dataclasses.Field[Any], form: Form, attribute: Attribute[Any] | None) -> _Field:
    absent: Any = None if form.is_optional else _NEEDED
    if field.default_factory is not dataclasses.MISSING:
        absent = field.default_factory()
    elif field.default is not dataclasses.MISSING:
        absent = field.default
    may_be_missing = attribute is None or attribute.null
    return _Field(field.name, form, absent, absent if may_be_missing else _NEEDED)


def _judged(field: _Field, value: Any) -> Any:
    try:
        return field.form.load(value)
    except BROKEN as error:
        raise ValueError(f"{field.name}: {error}") from error


def form_of(hint: Any) -> Form:
    """The form of an annotation.

    :raises TypeError: for one that has none, at import.
    """
    if hint == Precise:
        return Form(from_epoch, precise)
    origin, arguments = typing.get_origin(hint), typing.get_args(hint)
    if origin in (typing.Union, types.UnionType):
        (inner,) = (one for one in arguments if one is not types.NoneType)
        return dataclasses.replace(form_of(inner), is_optional=True)
    if hint in _SIMPLE:
        return _SIMPLE[hint]
    if isinstance(hint, type) and issubclass(hint, str) and not issubclass(hint, enum.Enum):
        return Form(lambda value: hint(_text(value)), str)
    if isinstance(hint, type) and issubclass(hint, enum.Enum):
        return Form(hint, lambda value: value.value)
    if dataclasses.is_dataclass(hint) and isinstance(hint, type):
        return _map_form(_Shape(hint, None))
    if origin is tuple and dataclasses.is_dataclass(arguments[0]):
        inner = form_of(arguments[0])
        return Form(lambda rows: tuple(map(inner.load, rows)), lambda rows: list(map(inner.store, rows)))
    if origin in (collections.abc.Mapping, dict):
        return _by_name(_SIMPLE[datetime]) if arguments[1] is datetime else Form(_as_dict, dict)
    raise TypeError(f"no item can hold {hint}")


def _map_form(shape: _Shape) -> Form:
    def load(value: Any) -> Any:
        return shape.load(_as_dict(value).get)

    def store(record: Any) -> dict[str, Any]:
        return {name: value for name, value in shape.store(record).items() if value is not None}

    return Form(load, store)


def _by_name(form: Form) -> Form:
    def each(convert: Callable[[Any], Any]) -> Callable[[Any], dict[str, Any]]:
        return lambda values: {name: convert(value) for name, value in sorted(_as_dict(values).items())}

    return Form(each(form.load), each(form.store))


def _as_dict(value: Any) -> dict[str, Any]:
    found: dict[str, Any] = value if isinstance(value, dict) else value.as_dict()
    return found


def _text(value: Any) -> str:
    if not isinstance(value, str):
        raise TypeError("no text")
    return value


def _texts(value: Any) -> list[str]:
    """Of a set in order, of a list as they lie."""
    if not isinstance(value, list | set):
        raise TypeError("no texts")
    return [_text(one) for one in (sorted(value) if isinstance(value, set) else value)]


def _whole_number(value: Any) -> int:
    if isinstance(value, bool) or value != int(value) or not 0 <= value <= _LARGEST:
        raise ValueError(f"{value} makes no sense")
    return int(value)


def _flag(value: Any) -> bool:
    if not isinstance(value, bool):
        raise TypeError("neither true nor false")
    return value


_SIMPLE: dict[Any, Form] = {
    str: Form(_text, str),
    int: Form(_whole_number, int),
    float: Form(float, float),
    bool: Form(_flag, bool),
    datetime: Form(from_epoch, to_epoch),
    frozenset[str]: Form(lambda value: frozenset(_texts(value)), set),
    tuple[str, ...]: Form(lambda value: tuple(_texts(value)), list),
}
