"""The seed's lists of ids: they change in the transaction of what they are about, and decide nothing."""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from pynamodb.expressions.condition import Condition, size

from accessportal.kernel.errors import NoAnswer
from accessportal.leases.models import ACTIVE, ALL, ListItem, list_of_state
from accessportal.leases.states import MOST_ACCOUNTS, MOST_LEASES, Account, AccountState, Lease, LeaseState, ListFull
from accessportal.store.reading import get_together
from accessportal.store.transactions import Change, ConditionFailed, Overtaken, Step, Upsert, transact, until_written

_CONTENDED = NoAnswer("Too many others are changing the pool of accounts right now. Try again.", code="pool_contended")
NAMES = (ALL, *map(list_of_state, AccountState), ACTIVE)
"""All lists of the seed."""
# Every change of the pool meets at its lists: of one process, one at a time is faster than many who undo each other.
_one_at_a_time = threading.Lock()


@dataclass(frozen=True, slots=True)
class Moved:
    """An id leaves some lists and comes into others."""

    name: str
    left: frozenset[str]
    entered: frozenset[str]


def of_row(row: Account | Lease | None) -> frozenset[str]:
    """The lists in which it is: a lease in none before its access was proved."""
    if isinstance(row, Account):
        return frozenset({ALL, list_of_state(row.state)})
    return frozenset() if row is None or row.state is LeaseState.STARTING else frozenset({ACTIVE})


def read(name: str) -> list[str]:
    """One list, strongly read."""
    return _read([name])[name]


def read_all() -> dict[str, list[str]]:
    """All lists, strongly read in one request."""
    return _read(NAMES)


def _read(names: Sequence[str]) -> dict[str, list[str]]:
    items = get_together([(ListItem, name) for name in names])
    return {name: list(item.data or ()) if item is not None else [] for name, item in zip(names, items, strict=True)}


def write(own: Sequence[Step], moves: Iterable[Moved], *, further: Sequence[Step]) -> None:
    """Write ``own`` and ``further`` with the lists that follow.

    :raises Overtaken: when one of ``own`` does not hold.
    :raises ConditionFailed: when one of ``further`` does not hold.
    :raises ListFull: when a list holds as many ids as it can.
    """
    wanted = [move for move in moves if move.left or move.entered]

    def attempt() -> None:
        names = sorted({name for move in wanted for name in move.left})
        leaving = _leaving(wanted, _read(names) if names else {})
        entering = {name: enter(name, move.name) for move in wanted for name in sorted(move.entered)}
        try:
            transact([*own, *further, *leaving, *entering.values()])
        except ConditionFailed as error:
            full = next((name for name, step in entering.items() if error.step is step), "")
            if full:
                raise ListFull(full, most_in(full)) from error
            if any(error.step is step for step in leaving):
                # An id before it left the list meanwhile, so that it is found at another place.
                raise Overtaken from error
            raise

    with _one_at_a_time:
        try:
            until_written(attempt, contended=_CONTENDED)
        except ConditionFailed as error:
            if any(error.step is step for step in own):
                raise Overtaken from error
            raise


def _leaving(moves: Iterable[Moved], lists: Mapping[str, Sequence[str]]) -> list[Change]:
    """What is in no list, against the rows, leaves it all the same: ``check_pool`` reports and mends."""
    return [remove(name, move.name, lists[name]) for move in moves for name in sorted(move.left) if move.name in lists[name]]


def remove(name: str, one: str, ids: Sequence[str]) -> Change:
    """The step that takes ``one`` out of a list, once, if it is still where it is in ``ids``; of a double the last, if the first is there,
    too: or two who mend would take both."""
    first, last = ids.index(one), len(ids) - 1 - ids[::-1].index(one)
    return Change(ListItem, name, [ListItem.data[last].remove()], (ListItem.data[last] == one) & (ListItem.data[first] == one))


def enter(name: str, one: str) -> Upsert:
    """The step that puts ``one`` into a list, unless that is full."""
    return _entering(name, one, _has_room(name))


def enter_once(name: str, one: str) -> Upsert:
    """As :func:`enter`, unless it is there."""
    return _entering(name, one, _has_room(name) & ~ListItem.data.contains(one))


def _has_room(name: str) -> Condition:
    room: Condition = ListItem.data.does_not_exist() | (size(ListItem.data) < most_in(name))
    return room


def _entering(name: str, one: str, condition: Condition) -> Upsert:
    return Upsert(ListItem, name, [ListItem.data.set((ListItem.data | []).append([one]))], condition)


def most_in(name: str) -> int:
    """How many ids a list may hold: no lease is given up because its own has no room."""
    return MOST_LEASES if name in (ACTIVE, list_of_state(AccountState.LEASED)) else MOST_ACCOUNTS


def extra_in(found: Sequence[str], wanted: Iterable[str]) -> tuple[str, ...]:
    """What a list holds and should not, or holds twice."""
    return tuple((Counter(found) - Counter(set(wanted))).elements())
