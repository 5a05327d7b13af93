"""What the events of a chain tell of its record, and where the record says otherwise. Pure.

A fact is one value of a record under a name. Each kind of record has a table of what each action sets; what no event tells is left open.
"""

from __future__ import annotations

import enum
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from operator import attrgetter
from typing import Any, Final, Protocol, runtime_checkable

from accessportal.audit.actions import ACTIONS
from accessportal.audit.queries import is_checked_by, mark_of
from accessportal.audit.states import AuditEvent, ChainBreak
from accessportal.kernel.clock import to_epoch
from accessportal.kernel.pseudonyms import pseudonyms_in
from accessportal.kernel.texts import cut

Facts = Mapping[str, Any]
Act = Callable[[AuditEvent, Facts], Facts]
"""What an event sets, by the facts before it."""

_BAD_DATA = (ArithmeticError, AttributeError, LookupError, TypeError, ValueError)
EXISTS: Final = "exists"
"""The fact that there is an item."""


class _Untold(enum.Enum):
    UNTOLD = "not told"


UNTOLD: Final = _Untold.UNTOLD
"""An event leaves open what the fact is from then on."""


@runtime_checkable
class Judge(Protocol):
    """What events tell of a fact that is not one value."""

    def is_met_by(self, value: Any) -> bool: ...


@dataclass(frozen=True, slots=True)
class Near:
    """A moment that is told by the time of the event, which is rounded."""

    epoch: int

    def is_met_by(self, value: Any) -> bool:
        return isinstance(value, int) and abs(value - self.epoch) <= 1

    def __str__(self) -> str:
        return str(self.epoch)


@dataclass(frozen=True, slots=True)
class OneOf:
    """The events leave open which of these it is."""

    values: tuple[Any, ...]

    def is_met_by(self, value: Any) -> bool:
        return value in self.values

    def __str__(self) -> str:
        return " or ".join(map(_shown, self.values))


@dataclass(frozen=True, slots=True)
class Among:
    """A list of some of these: the events leave open which are left."""

    values: tuple[str, ...]

    def is_met_by(self, value: Any) -> bool:
        return bool(value) and set(value) <= set(self.values)

    def __str__(self) -> str:
        return f"some of {_shown(sorted(self.values))}"


@dataclass(frozen=True, slots=True)
class Check:
    """An event tells a check of the value, and not the value."""

    check: str

    def is_met_by(self, value: Any) -> bool:
        return is_checked_by(self.check, value)

    def __str__(self) -> str:
        return "another value"


@dataclass(frozen=True, slots=True)
class Marks:
    """Events tell marks of some texts, by name. Whoever is erased is a pseudonym in both."""

    marks: Mapping[str, str]

    def is_met_by(self, value: Any) -> bool:
        if not isinstance(value, Mapping) or value.keys() != self.marks.keys():
            return False
        return all(mark == mark_of(value[name]) or (pseudonyms_in(name) == [name] == [value[name]]) for name, mark in self.marks.items())

    def __str__(self) -> str:
        return "others"


@dataclass(frozen=True, slots=True)
class Kind:
    """How the chains of one kind of record tell it: ``acts`` by action, ``facts`` of a record. A record has as many facts that begin with
    ``many`` as there are events of them. Not ``is_itemized``: a chain alone does not tell that there is an item. ``may_vanish``: whether
    one of these facts may be gone now without an event."""

    acts: Mapping[str, Act]
    facts: Callable[[Any], dict[str, Any]]
    many: str = ""
    is_itemized: bool = True
    may_vanish: Callable[[Facts, datetime], bool] = lambda _facts, _now: False


@dataclass(slots=True)
class Told:
    """What a chain tells: ``facts``, each by the event of ``told_by``. Not ``is_whole``: an event of a newer version may tell more."""

    facts: dict[str, Any] = field(default_factory=dict)
    told_by: dict[str, int] = field(default_factory=dict)
    is_whole: bool = True
    breaks: list[ChainBreak] = field(default_factory=list)


def replay(kind: Kind, events: Iterable[AuditEvent]) -> Told:
    """What the events tell, in order. One that belongs to another kind of record is a break."""
    told = Told()
    for event in events:
        act = kind.acts.get(event.action)
        if act is None:
            if event.action in ACTIONS:
                told.breaks.append(ChainBreak(event.entity, event.sequence, f"{event.action} is no event of such a record"))
            told.facts.clear()
            told.is_whole = False
            continue
        try:
            told_now = act(event, told.facts)
        except _BAD_DATA:
            # Where hashes have no key, anybody may have written it.
            told.breaks.append(ChainBreak(event.entity, event.sequence, f"its data are not those of {event.action}"))
            told.facts.clear()
            told.is_whole = False
            continue
        for name, value in told_now.items():
            told.facts[name] = value
            told.told_by[name] = event.sequence
    return told


def differences(kind: Kind, told: Told, facts: Facts, *, entity: str, version: int) -> list[ChainBreak]:
    """Where the item's ``facts`` are not as the chain tells."""
    breaks = list(told.breaks)
    if told.facts.get(EXISTS) is False:
        breaks.append(ChainBreak(entity, told.told_by[EXISTS], "there is an item of what is gone"))
        return breaks
    for name, value in told.facts.items():
        found = facts.get(name)
        if name != EXISTS and value is not UNTOLD and not _is_met(value, found):
            breaks.append(ChainBreak(entity, told.told_by[name], f"{name} is {_shown(found)}, and the events tell {_shown(value)}"))
    if kind.many and told.is_whole:
        for name, value in facts.items():
            if name.startswith(kind.many) and name not in told.facts:
                breaks.append(ChainBreak(entity, version, f"{name} is {_shown(value)}, and no event tells of it"))
    return breaks


def sets(*names: str, **values: Any) -> Act:
    """Set the facts of these ``names`` by the event's data, and ``values``: each is a constant, or tells it by the event."""

    def act(event: AuditEvent, _before: Facts) -> Facts:
        told = {name: plain(event.data[name]) if name in event.data else UNTOLD for name in names}
        return told | {name: value(event) if callable(value) else value for name, value in values.items()}

    return act


def data(name: str, default: Any = UNTOLD) -> Callable[[AuditEvent], Any]:
    """What the event's data say under ``name``."""
    return lambda event: plain(event.data.get(name, default))


def actor(event: AuditEvent) -> str:
    return event.actor


def moment(event: AuditEvent) -> Near:
    return Near(to_epoch(event.at))


def subject(event: AuditEvent) -> str:
    return event.subject


NOTHING = sets()
GONE = sets(**{EXISTS: False})


def of(*names: str, **views: Callable[[Any], Any]) -> Callable[[Any], dict[str, Any]]:
    """The facts of a record: its attributes of these ``names``, and ``views`` of it."""
    reads = {name: attrgetter(name) for name in names} | views

    def facts(record: Any) -> dict[str, Any]:
        return {name: plain(read(record)) for name, read in reads.items()}

    return facts


def joined(known: Any, one: str) -> Any:
    """A list, as far as it is known, with one more."""
    if known is UNTOLD:
        return UNTOLD
    return Among((*known.values, one)) if isinstance(known, Among) else sorted({*known, one})


def parted(known: Any, one: str) -> Any:
    """As :func:`joined`, without it."""
    if known is UNTOLD:
        return UNTOLD
    if isinstance(known, Among):
        return Among(tuple(name for name in known.values if name != one))
    return sorted({*known} - {one})


def plain(value: Any) -> Any:
    """The value as an event's data would hold it."""
    if isinstance(value, enum.Enum) and value is not UNTOLD:
        return value.value
    if isinstance(value, datetime):
        return to_epoch(value)
    if isinstance(value, frozenset | set):
        return sorted(value)
    if isinstance(value, Mapping):
        return {name: plain(one) for name, one in value.items()}
    if isinstance(value, list | tuple):
        return [plain(one) for one in value]
    return value


def _is_met(told: Any, found: Any) -> bool:
    return told.is_met_by(found) if isinstance(told, Judge) else bool(told == found)


def _shown(value: Any) -> str:
    return "nothing" if value in (None, "", [], {}) else cut(str(value))
