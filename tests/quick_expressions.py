"""DynamoDB's conditions and updates, read once and kept as functions of an item's attributes (``tests/quick_dynamodb.py``)."""

from __future__ import annotations

import functools
import operator
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from decimal import Decimal
from typing import Any

from moto.dynamodb.models.dynamo_type import DynamoType


class Unusual(Exception):
    """Left for moto to answer."""


Attrs = Mapping[str, DynamoType]
Operand = Callable[[Attrs, Attrs], DynamoType | None]
Holds = Callable[[Attrs, Attrs], bool]
Path = tuple[str | int, ...]

_TOKEN = re.compile(r"\s*([#:]?[A-Za-z0-9_]+|<>|<=|>=|[=<>(),.\[\]+-])")
_NUMBER = re.compile(r"-?\d{1,38}(\.\d{1,38})?")
_ORDER: dict[str, Callable[[Any, Any], bool]] = {"<": operator.lt, "<=": operator.le, ">": operator.gt, ">=": operator.ge}
_SETS = ("SS", "NS")


def is_number(text: object) -> bool:
    return isinstance(text, str) and _NUMBER.fullmatch(text) is not None


def typed(kind: str, value: Any) -> DynamoType:
    made: DynamoType = object.__new__(DynamoType)
    made.type, made.value = kind, value
    return made


class _Reader:
    """The words of one expression, from left to right."""

    def __init__(self, text: str, names: tuple[tuple[str, str], ...]) -> None:
        self.tokens, place, end = list[str](), 0, len(text.rstrip())
        while place < end:
            found = _TOKEN.match(text, place)
            if found is None:
                raise Unusual
            self.tokens.append(found[1])
            place = found.end()
        self.place, self._names = 0, dict(names)
        self.names, self.values = set[str](), set[str]()

    def next(self) -> str:
        return self.tokens[self.place] if self.place < len(self.tokens) else ""

    def take(self, *wanted: str) -> str:
        """The next word, which is one of ``wanted`` if there are any."""
        word = self.next()
        if not word or (wanted and word.upper() not in wanted):
            raise Unusual
        self.place += 1
        return word

    def takes(self, *wanted: str) -> str:
        return self.take().upper() if self.next().upper() in wanted else ""

    def path(self) -> Path:
        parts: list[str | int] = [self._name()]
        while mark := self.takes(".", "["):
            if mark == ".":
                parts.append(self._name())
            else:
                parts.append(int(self.take()) if self.next().isdecimal() else self._fail())
                self.take("]")
        return tuple(parts)

    def _name(self) -> str:
        word = self.take()
        # A name without "#" may be a reserved word, of which moto has the list.
        if not word.startswith("#") or word not in self._names:
            raise Unusual
        self.names.add(word)
        return self._names[word]

    def _fail(self) -> int:
        raise Unusual

    def is_group(self, begin: int, end: int) -> bool:
        """Whether one pair of parentheses holds all of these words."""
        depth = 0
        for place in range(begin, end):
            depth += {"(": 1, ")": -1}.get(self.tokens[place], 0)
            if depth == 0:
                return self.tokens[begin] == "(" and place == end - 1
        return False

    def operand(self) -> Operand:
        word = self.next()
        if word.startswith(":"):
            self.values.add(self.take())
            return lambda _attrs, values: values.get(word) or _missing()
        path = self.path()
        if len(path) == 1:
            name: Any = path[0]
            return lambda attrs, _values: attrs.get(name)
        return lambda attrs, _values: find(attrs, path)


def _missing() -> DynamoType:
    raise Unusual


def find(attrs: Attrs, path: Path) -> DynamoType | None:
    found: DynamoType | None = attrs.get(path[0])  # type: ignore[arg-type]
    for part in path[1:]:
        if found is None:
            return None
        if found.type == "M" and isinstance(part, str):
            found = found.value.get(part)
        elif found.type == "L" and isinstance(part, int) and part < len(found.value):
            found = found.value[part]
        else:
            return None
    return found


@functools.cache
def condition_of(text: str, names: tuple[tuple[str, str], ...]) -> tuple[Holds, frozenset[str], frozenset[str]]:
    """Whether an item fulfils it, by its attributes and the values; which names and which values it speaks of."""
    reader = _Reader(text, names)
    holds = _any_of(reader)
    if reader.next():
        raise Unusual
    return holds, frozenset(reader.names), frozenset(reader.values)


@dataclass(frozen=True, slots=True)
class KeyTerm:
    """What a query asks of one key. ``equals`` is the value's name where it must be equal."""

    name: str
    holds: Holds
    equals: str


@functools.cache
def key_terms_of(text: str, names: tuple[tuple[str, str], ...]) -> tuple[tuple[KeyTerm, ...], frozenset[str], frozenset[str]]:
    reader, terms = _Reader(text, names), list[KeyTerm]()
    if reader.is_group(0, len(reader.tokens)):
        reader.tokens = reader.tokens[1:-1]
    while not terms or reader.takes("AND"):
        begun = reader.place
        words = reader.tokens[begun : begun + 3]
        holds = _one(reader)
        name, mark = (words[2], "") if words[0].upper() == "BEGINS_WITH" else (words[0], words[1].upper())
        if mark not in ("", "=", "BETWEEN", *_ORDER):
            raise Unusual
        terms.append(KeyTerm(dict(names)[name], holds, words[2] if mark == "=" else ""))
    if reader.next():
        raise Unusual
    return tuple(terms), frozenset(reader.names), frozenset(reader.values)


@functools.cache
def projection_of(text: str, names: tuple[tuple[str, str], ...]) -> tuple[tuple[str, ...], frozenset[str]]:
    """The attributes that are wanted, each whole."""
    reader, wanted = _Reader(text, names), list[Path]()
    while not wanted or reader.takes(","):
        wanted.append(reader.path())
    if reader.next() or any(len(path) > 1 for path in wanted) or len(set(wanted)) != len(wanted):
        raise Unusual
    return tuple(str(path[0]) for path in wanted), frozenset(reader.names)


def _any_of(reader: _Reader) -> Holds:
    parts = [_all_of(reader)]
    while reader.takes("OR"):
        parts.append(_all_of(reader))
    return parts[0] if len(parts) == 1 else lambda attrs, values: any(part(attrs, values) for part in parts)


def _all_of(reader: _Reader) -> Holds:
    parts = [_one(reader)]
    while reader.takes("AND"):
        parts.append(_one(reader))
    return parts[0] if len(parts) == 1 else lambda attrs, values: all(part(attrs, values) for part in parts)


def _one(reader: _Reader) -> Holds:
    if reader.takes("NOT"):
        inner = _one(reader)
        return lambda attrs, values: not inner(attrs, values)
    if reader.takes("("):
        begun = reader.place
        inner = _any_of(reader)
        reader.take(")")
        if reader.is_group(begun, reader.place - 1):
            raise Unusual
        return inner
    if function := reader.takes("ATTRIBUTE_EXISTS", "ATTRIBUTE_NOT_EXISTS", "BEGINS_WITH", "CONTAINS"):
        return _function(reader, function)
    return _comparison(reader)


def _function(reader: _Reader, function: str) -> Holds:
    reader.take("(")
    left = reader.operand()
    if function in ("BEGINS_WITH", "CONTAINS"):
        reader.take(",")
        right, test = reader.operand(), _begins_with if function == "BEGINS_WITH" else _contains
        reader.take(")")
        return lambda attrs, values: test(left(attrs, values), right(attrs, values))
    reader.take(")")
    is_wanted = function == "ATTRIBUTE_EXISTS"
    return lambda attrs, values: (left(attrs, values) is not None) is is_wanted


def _begins_with(whole: DynamoType | None, start: DynamoType | None) -> bool:
    return whole is not None and start is not None and whole.type == start.type == "S" and whole.value.startswith(start.value)


def _contains(whole: DynamoType | None, part: DynamoType | None) -> bool:
    if whole is None or part is None:
        return False
    if whole.type not in ("S", "SS") or part.type != "S":
        raise Unusual
    return part.value in whole.value


def _comparison(reader: _Reader) -> Holds:
    left = _size(reader) if reader.takes("SIZE") else reader.operand()
    if reader.takes("BETWEEN"):
        low = reader.operand()
        reader.take("AND")
        high = reader.operand()
        return lambda attrs, values: _is_between(left(attrs, values), low(attrs, values), high(attrs, values))
    if reader.takes("IN"):
        reader.take("(")
        chosen = [reader.operand()]
        while reader.takes(","):
            chosen.append(reader.operand())
        reader.take(")")
        return lambda attrs, values: any(is_equal(left(attrs, values), one(attrs, values)) for one in chosen)
    mark = reader.take("=", "<>", *_ORDER)
    right = _size(reader) if reader.takes("SIZE") else reader.operand()
    if mark == "=":
        return lambda attrs, values: is_equal(left(attrs, values), right(attrs, values))
    if mark == "<>":
        return lambda attrs, values: not is_equal(left(attrs, values), right(attrs, values))
    test = _ORDER[mark]
    return lambda attrs, values: _is_ordered(test, left(attrs, values), right(attrs, values))


def _size(reader: _Reader) -> Operand:
    reader.take("(")
    inner = reader.operand()
    reader.take(")")

    def size(attrs: Attrs, values: Attrs) -> DynamoType:
        found = inner(attrs, values)
        if found is None or found.type not in ("S", "SS", "NS", "L", "M"):
            raise Unusual
        return typed("N", str(len(found.value)))

    return size


def is_equal(left: DynamoType | None, right: DynamoType | None) -> bool:
    if left is None or right is None:
        if left is right or (left or right).type == "NULL":  # type: ignore[union-attr]
            raise Unusual
        return False
    if left.type != right.type:
        if "NULL" in (left.type, right.type):
            raise Unusual
        return False
    if left.type == "S" or left.type == "BOOL":
        return bool(left.value == right.value)
    return left == right


def sortable(value: DynamoType) -> Any:
    if value.type not in ("S", "N"):
        raise Unusual
    return value.value if value.type == "S" else Decimal(value.value)


def _is_ordered(test: Callable[[Any, Any], bool], left: DynamoType | None, right: DynamoType | None) -> bool:
    if left is None or right is None:
        return False
    if left.type != right.type:
        raise Unusual
    return test(sortable(left), sortable(right))


def _is_between(value: DynamoType | None, low: DynamoType | None, high: DynamoType | None) -> bool:
    return value is not None and _is_ordered(operator.ge, value, low) and _is_ordered(operator.le, value, high)


Act = Callable[[Attrs, dict[str, DynamoType], Attrs], None]


@dataclass(frozen=True, slots=True)
class Update:
    """What an update does. ``roots`` are the attributes that it may change."""

    acts: tuple[Act, ...]
    names: frozenset[str]
    values: frozenset[str]
    roots: frozenset[str]

    def apply(self, old: Attrs, new: dict[str, DynamoType], values: Attrs) -> None:
        """Change ``new``, a copy of ``old`` that shares its values."""
        for act in self.acts:
            act(old, new, values)


@functools.cache
def update_of(text: str, names: tuple[tuple[str, str], ...]) -> Update:
    reader = _Reader(text, names)
    acts, paths, clauses = list[Act](), list[Path](), list[str]()
    while reader.next():
        clauses.append(reader.take(*_CLAUSES).upper())
        while True:
            path, act = _CLAUSES[clauses[-1]](reader)
            paths.append(path)
            acts.append(act)
            if not reader.takes(","):
                break
    roots = [path[0] for path in paths]
    # moto has rules for clauses that come twice, and for paths that overlap.
    if not acts or len(set(clauses)) != len(clauses) or len(set(roots)) != len(roots):
        raise Unusual
    return Update(tuple(acts), frozenset(reader.names), frozenset(reader.values), frozenset(map(str, roots)))


def _set(reader: _Reader) -> tuple[Path, Act]:
    path = reader.path()
    reader.take("=")
    value = _term(reader)
    if mark := reader.takes("+", "-"):
        value = _sum(mark, value, _term(reader))
    return path, lambda old, new, values: _put(new, path, value(old, values) or _missing())


def _term(reader: _Reader) -> Operand:
    function = reader.takes("IF_NOT_EXISTS", "LIST_APPEND")
    if not function:
        return reader.operand()
    reader.take("(")
    first = reader.operand() if function == "IF_NOT_EXISTS" else _term(reader)
    reader.take(",")
    second = _term(reader)
    reader.take(")")
    if function == "IF_NOT_EXISTS":
        return lambda attrs, values: first(attrs, values) or second(attrs, values)

    def appended(attrs: Attrs, values: Attrs) -> DynamoType:
        left, right = first(attrs, values), second(attrs, values)
        if left is None or right is None or not left.type == right.type == "L":
            raise Unusual
        return typed("L", [*left.value, *right.value])

    return appended


def _sum(mark: str, first: Operand, second: Operand) -> Operand:
    def summed(attrs: Attrs, values: Attrs) -> DynamoType:
        left, right = first(attrs, values), second(attrs, values)
        if left is None or right is None or not left.type == right.type == "N":
            raise Unusual
        return left + right if mark == "+" else left - right

    return summed


def _put(new: dict[str, DynamoType], path: Path, value: DynamoType | None) -> None:
    """With everything on the way copied. No value: taken away."""
    name = path[0]
    if len(path) == 1:
        if value is None:
            new.pop(str(name), None)
        else:
            new[str(name)] = value
        return
    outer = new.get(str(name))
    if outer is None:
        raise Unusual
    new[str(name)] = _replaced(outer, path[1:], value)


def _replaced(outer: DynamoType, path: Path, value: DynamoType | None) -> DynamoType:
    part, rest = path[0], path[1:]
    inner: Any = dict(outer.value) if outer.type == "M" else list(outer.value) if outer.type == "L" else _missing()
    if isinstance(part, int) is not (outer.type == "L") or (isinstance(part, int) and part >= len(inner)):
        raise Unusual
    if rest:
        inner[part] = _replaced(find({"": outer}, ("", part)) or _missing(), rest, value)
    elif value is not None:
        inner[part] = value
    elif isinstance(part, int) or part in inner:
        del inner[part]
    return typed(outer.type, inner)


def _remove(reader: _Reader) -> tuple[Path, Act]:
    path = reader.path()
    return path, lambda _old, new, _values: _put(new, path, None)


def _add(reader: _Reader) -> tuple[Path, Act]:
    path, value = reader.path(), reader.operand()

    def act(old: Attrs, new: dict[str, DynamoType], values: Attrs) -> None:
        given, found = value(old, values) or _missing(), find(old, path)
        if given.type == "N":
            found = found or typed("N", "0")
        if given.type not in ("N", *_SETS) or (found is not None and found.type != given.type):
            raise Unusual
        if found is None:
            _put(new, path, given)
        elif given.type == "N":
            _put(new, path, found + given)
        else:
            _put(new, path, typed(given.type, [*found.value, *(one for one in given.value if one not in found.value)]))

    return path, act


def _delete(reader: _Reader) -> tuple[Path, Act]:
    path, value = reader.path(), reader.operand()

    def act(old: Attrs, new: dict[str, DynamoType], values: Attrs) -> None:
        given, found = value(old, values) or _missing(), find(old, path)
        if given.type not in _SETS or (found is not None and found.type != given.type):
            raise Unusual
        if found is not None:
            left = [one for one in found.value if one not in given.value]
            _put(new, path, typed(given.type, left) if left else None)

    return path, act


_CLAUSES: dict[str, Callable[[_Reader], tuple[Path, Act]]] = {"SET": _set, "REMOVE": _remove, "ADD": _add, "DELETE": _delete}
