"""Counts what goes to DynamoDB: round trips (each try of each call) and the capacity units that the engine says it took."""

from __future__ import annotations

import threading
from collections.abc import Iterator, Mapping
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
