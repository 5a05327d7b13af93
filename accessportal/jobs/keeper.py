"""Keeping worker processes alive: each shows itself to its keeper, which ends and replaces one that died or does not move."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from multiprocessing import connection, get_context
from multiprocessing.context import ForkProcess
from multiprocessing.sharedctypes import RawValue

import structlog
from django.db import connections

log = structlog.get_logger(__name__)

_LOOK_SECONDS = 0.5
_START_SECONDS = 60.0
_STOP_SECONDS = 10.0
# One that dies at once (the database is away) is not started again at once.
_RESTART_SECONDS = 3.0
_FORK = get_context("fork")


class Slot:
    """What a process shows its keeper without a lock, because one who dies with a lock stops everybody else."""

    def __init__(self) -> None:
        self._deadline = RawValue("d", 0.0)
        self._row = RawValue("q", 0)

    @property
    def is_overdue(self) -> bool:
        return bool(time.monotonic() > self._deadline.value)

    @property
    def row(self) -> int:
        """The task in hand; 0 for none."""
        return int(self._row.value)

    def show(self, *, for_seconds: float) -> None:
        """The process lives, and shows itself again within so many seconds."""
        self._deadline.value = time.monotonic() + for_seconds

    def take(self, row: int) -> None:
        """``row`` is in hand (0: nothing)."""
        self._row.value = row


class Stopping:
    """True once this process was asked to stop, or whoever started it is gone."""

    def __init__(self, *numbers: signal.Signals) -> None:
        self._parent = os.getppid()
        self._is_asked = False
        for number in numbers:
            signal.signal(number, self._ask)

    def __bool__(self) -> bool:
        return self._is_asked or os.getppid() != self._parent

    def _ask(self, _number: int, _frame: object) -> None:
        self._is_asked = True


Work = Callable[[Slot, Stopping], None]


@dataclass(slots=True)
class Place:
    """One process at a time does ``work`` here."""

    name: str
    work: Work
    slot: Slot = field(default_factory=Slot)
    process: ForkProcess | None = None
    started_at: float = 0.0


def keep(places: Sequence[Place], stopping: Stopping) -> None:
    """Keep a process running at every place until ``stopping``; then none runs any more. Whoever takes longer than 10 s is killed."""
    # A connection can't be shared with a child.
    connections.close_all()
    try:
        while not stopping:
            for place in places:
                _look_at(place)
            connection.wait([place.process.sentinel for place in places if place.process is not None], timeout=_LOOK_SECONDS)
    finally:
        _stop(places)


def _look_at(place: Place) -> None:
    process = place.process
    if process is not None and process.is_alive() and place.slot.is_overdue:
        log.error("worker.silent", place=place.name, pid=process.pid)
        process.kill()
        # One that the kernel does not let go of yet is looked at again.
        process.join(_LOOK_SECONDS)
    if process is not None and not process.is_alive():
        log.warning("worker.ended", place=place.name, pid=process.pid, code=process.exitcode)
        # What it had in hand is held by nobody now, and comes back to the line.
        place.slot.take(0)
        process.close()
        place.process = process = None
    if process is None and time.monotonic() >= place.started_at + _RESTART_SECONDS:
        _start(place)


def _start(place: Place) -> None:
    place.slot.show(for_seconds=_START_SECONDS)
    place.started_at = time.monotonic()
    place.process = _FORK.Process(target=_run, args=(place,), name=place.name)
    place.process.start()
    log.info("worker.started", place=place.name, pid=place.process.pid)


def _run(place: Place) -> None:
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    place.work(place.slot, Stopping(signal.SIGTERM))


def _stop(places: Sequence[Place]) -> None:
    processes = [place.process for place in places if place.process is not None]
    for process in processes:
        process.terminate()
    deadline = time.monotonic() + _STOP_SECONDS
    for process in processes:
        process.join(max(0.0, deadline - time.monotonic()))
    for process in processes:
        # Nothing is lost by it: the task comes back to its line, and a tick finds what was under way.
        process.kill()
        process.join(_LOOK_SECONDS)
