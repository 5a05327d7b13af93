"""The kernel's ``after_commit`` port, on django-q2's queue in Django's database."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import structlog
from django.db import Error as DatabaseError
from django.db import close_old_connections
from django_q.tasks import async_task

from accessportal.jobs.schedules import SCHEDULES
from accessportal.kernel.clock import SystemClock
from accessportal.observe import heartbeats

log = structlog.get_logger(__name__)


@dataclass(frozen=True, slots=True)
class Task:
    """``path`` is the function, killed after ``timeout_seconds`` (its work is picked up by the next tick)."""

    path: str
    timeout_seconds: int


# What a change may ask for to happen soon: the name given to after_commit, and the task that does it.
TASKS: dict[str, Task] = {
    "carry_out": Task("accessportal.jobs.tasks.carry_out", timeout_seconds=150),
    "watch_ends": Task("accessportal.jobs.tasks.watch_ends", timeout_seconds=300),
} | {job.name: Task(job.task, job.timeout_seconds) for job in SCHEDULES}


def enqueue(name: str, /, **payload: str) -> None:
    """The task ``name`` is queued. Never raises: the change that it serves has been written, and the tick finds the work."""
    task = TASKS.get(name)
    if task is None:
        log.error("jobs.unknown", job=name)
        return
    try:
        async_task(task.path, **payload, q_options={"group": name, "timeout": task.timeout_seconds})
    except DatabaseError:
        log.exception("jobs.not_queued", job=name)


def say_that_the_worker_lives(**_signal: Any) -> None:
    """A worker process has started; without this a fresh installation would not be ready before its first tick."""
    try:
        heartbeats.beat(heartbeats.WORKER, now=SystemClock().now())
    except DatabaseError:
        log.exception("jobs.no_heartbeat")
    finally:
        close_old_connections()
