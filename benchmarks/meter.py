"""Counts what goes to DynamoDB: round trips (each try of each call) and the capacity units that the engine says it took."""

from __future__ import annotations

import statistics
import threading
import time
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

from botocore import handlers

_READS = frozenset({"GetItem", "BatchGetItem", "Query", "Scan", "TransactGetItems"})


@dataclass(slots=True)
class Cost:
    """What one action cost. ``calls`` are the operations in order."""

    round_trips: int = 0
    read_units: float = 0.0
    write_units: float = 0.0
    calls: list[str] = field(default_factory=list)


_lock = threading.Lock()
_running: list[Cost] = []


def install() -> None:
    """Watch every DynamoDB client of this process; to be called before the first is made."""
    known: Any = handlers.BUILTIN_HANDLERS
    known.append(("before-parameter-build.dynamodb", _ask_for_units))
    known.append(("before-send.dynamodb", _count))
    known.append(("after-call.dynamodb", _add_units))


@contextmanager
def metered() -> Iterator[Cost]:
    """What all threads of this process do inside is added up."""
    cost = Cost()
    with _lock:
        _running.append(cost)
    try:
        yield cost
    finally:
        with _lock:
            _running.remove(cost)


def _ask_for_units(params: dict[str, Any], model: Any, **_rest: Any) -> None:
    if "ReturnConsumedCapacity" in model.input_shape.members:
        params["ReturnConsumedCapacity"] = "TOTAL"


def _count(**_rest: Any) -> None:
    with _lock:
        for cost in _running:
            cost.round_trips += 1


def _add_units(parsed: Mapping[str, Any], model: Any, **_rest: Any) -> None:
    told = parsed.get("ConsumedCapacity") or []
    units = sum(table["CapacityUnits"] for table in (told if isinstance(told, list) else [told]))
    with _lock:
        for cost in _running:
            cost.calls.append(model.name)
            if model.name in _READS:
                cost.read_units += units
            else:
                cost.write_units += units


@dataclass(frozen=True, slots=True)
class Measured:
    """Medians of several runs."""

    round_trips: float
    read_units: float
    write_units: float
    milliseconds: float


def measured(actions: Sequence[Callable[[], object]]) -> Measured:
    """Each action once, one after the other."""
    costs, spans = [], []
    for action in actions:
        began = time.perf_counter()
        with metered() as cost:
            action()
        spans.append(time.perf_counter() - began)
        costs.append(cost)
    return Measured(
        round_trips=statistics.median(cost.round_trips for cost in costs),
        read_units=statistics.median(cost.read_units for cost in costs),
        write_units=statistics.median(cost.write_units for cost in costs),
        milliseconds=1000 * statistics.median(spans),
    )


def show_growth(before: Mapping[str, Measured], after: Mapping[str, Measured], *, most: float, may_grow: Collection[str] = ()) -> list[str]:
    """Print what each action costs in a small and in a large table; the actions whose cost grew by more than ``most``, but for
    those that ``may_grow``."""
    width = max(len(name) for name in before)
    print(f"| {'action':<{width}} | {'round trips':>15} | {'read units':>17} | {'write units':>15} | {'growth':>6} | {'ms':>13} |")
    print(f"| {'-' * width} | {'-' * 14}: | {'-' * 16}: | {'-' * 14}: | {'-' * 5}: | {'-' * 12}: |")
    grown = []
    for name, one in before.items():
        other = after[name]
        pairs = [(one.round_trips, other.round_trips), (one.read_units, other.read_units), (one.write_units, other.write_units)]
        growth = max(big / little for little, big in pairs if little)
        cells = [f"{little:g} → {big:g}" for little, big in pairs]
        spans = f"{one.milliseconds:.0f} → {other.milliseconds:.0f}"
        print(f"| {name:<{width}} | {cells[0]:>15} | {cells[1]:>17} | {cells[2]:>15} | {growth:>6.2f} | {spans:>13} |")
        if growth > most and name not in may_grow:
            grown.append(f"{name} costs {growth:.2f} times as much in the large table as in the small one")
    return grown
