"""What the processes of a worker do: the tasks of one line, one after the other; or the schedules.

django-q2's own cluster hands tasks from process to process through pipes with a lock; who is killed while holding it stops all
(decision 0037). Here its worker function runs on the table itself.
"""

from __future__ import annotations

import functools
import time
from contextlib import AbstractContextManager, nullcontext
from typing import Any, Literal

import structlog
from django_q.brokers import get_broker
from django_q.conf import Conf
from django_q.monitor import save_task
from django_q.scheduler import scheduler
from django_q.signing import BadSignature, SignedPackage
from django_q.worker import worker

from accessportal.jobs.broker import LineBroker
from accessportal.jobs.keeper import Place, Slot, Stopping
from accessportal.jobs.schedules import Line, apply_schedules
from accessportal.kernel.clock import SystemClock

log = structlog.get_logger(__name__)

# Nothing between two looks takes longer, but for a database that hangs.
_IDLE_SECONDS = 60.0
# A task ends itself by its own limit; only one that can't is ended from outside, so much later.
_OVERTIME_SECONDS = 10.0
_SCHEDULES_SECONDS = 5.0
_MENDED_EVERY_SECONDS = 60.0
# A tick stays for what ends soon, so two often overlap; a third place is for the next.
_SWEEPERS = 3


def places() -> list[Place]:
    """Everything that has to run: the processes of each line, and the one that looks at the schedules."""
    counts = {Line.SWEEP: _SWEEPERS, Line.URGENT: Conf.WORKERS, Line.SLOW: Conf.WORKERS}
    workers = [
        Place(f"{line.name.lower()}-{number}", functools.partial(_work, line))
        for line, count in counts.items()
        for number in range(1, count + 1)
    ]
    return [Place("schedules", functools.partial(_keep_schedules, [place.slot for place in workers])), *workers]


def _work(line: Line, slot: Slot, stopping: Stopping) -> None:
    broker = get_broker(line.value)
    worker(_Feed(broker, slot, stopping), _Results(broker, slot), _Timer(slot), Conf.TIMEOUT)


def _keep_schedules(slots: list[Slot], _slot: Slot, stopping: Stopping) -> None:
    """What is due is put into its line, and what is under way is held."""
    broker: LineBroker = get_broker()
    mended_at = -_MENDED_EVERY_SECONDS
    while not stopping:
        _slot.show(for_seconds=_IDLE_SECONDS)
        if time.monotonic() - mended_at >= _MENDED_EVERY_SECONDS:
            apply_schedules(now=SystemClock().now())
            mended_at = time.monotonic()
        scheduler(broker)
        broker.hold([slot.row for slot in slots if slot.row])
        _rest(_SCHEDULES_SECONDS, stopping)


def _rest(seconds: float, stopping: Stopping) -> None:
    until = time.monotonic() + seconds
    while not stopping and time.monotonic() < until:
        time.sleep(Conf.POLL)


class _Feed:
    """Where the worker function gets its tasks from."""

    def __init__(self, broker: LineBroker, slot: Slot, stopping: Stopping) -> None:
        self._broker = broker
        self._slot = slot
        self._stopping = stopping

    def get(self) -> dict[str, Any] | Literal["STOP"]:
        while not self._stopping:
            self._slot.show(for_seconds=_IDLE_SECONDS)
            for row, payload in self._broker.dequeue() or ():
                try:
                    task = SignedPackage.loads(payload)
                except (TypeError, BadSignature):
                    log.exception("worker.unreadable_task", row=row)
                    self._broker.fail(row)
                    continue
                self._slot.take(row)
                return {**task, "cluster": self._broker.list_key, "ack_id": row}
        return "STOP"


class _Results:
    """Where the worker function puts what became of a task: it is kept, and the task leaves the line."""

    def __init__(self, broker: LineBroker, slot: Slot) -> None:
        self._broker = broker
        self._slot = slot

    def put(self, task: dict[str, Any]) -> None:
        save_task(task, self._broker)
        self._broker.acknowledge(task["ack_id"])
        self._slot.take(0)
        told = log.info if task["success"] else log.error
        told("worker.task_ended", task=task["name"], func=task["func"], success=task["success"], result=str(task["result"]))


class _Timer:
    """How long the task in hand may take, told by the worker function: to the keeper."""

    def __init__(self, slot: Slot) -> None:
        self._slot = slot
        self._value = -1.0

    def get_lock(self) -> AbstractContextManager[None]:
        return nullcontext()

    @property
    def value(self) -> float:
        return self._value

    @value.setter
    def value(self, seconds: float) -> None:
        self._value = seconds
        if seconds > 0:
            self._slot.show(for_seconds=seconds + _OVERTIME_SECONDS)
