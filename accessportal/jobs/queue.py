"""The kernel's ``after_commit`` port, on django-q2's queue in Django's database."""

from __future__ import annotations

from dataclasses import dataclass

import structlog
from django.db import Error as DatabaseError
from django_q.tasks import async_task

from accessportal.jobs.lines import Line
from accessportal.jobs.schedules import SCHEDULES

log = structlog.get_logger(__name__)


@dataclass(frozen=True, slots=True)
class Task:
    """``path`` is the function, killed after ``timeout_seconds`` (its work is picked up by the next tick). It waits in ``line``."""

    path: str
    timeout_seconds: int
    line: Line


# What a change may ask for to happen soon: the name given to after_commit, and the task that does it.
TASKS: dict[str, Task] = {
    "carry_out": Task("accessportal.jobs.tasks.carry_out", timeout_seconds=150, line=Line.URGENT),
    "end_departed": Task("accessportal.jobs.tasks.end_departed", timeout_seconds=150, line=Line.URGENT),
    "watch_ends": Task("accessportal.jobs.tasks.watch_ends", timeout_seconds=300, line=Line.SWEEP),
} | {job.name: Task(job.task, job.timeout_seconds, job.line) for job in SCHEDULES}


def enqueue(name: str, /, **payload: str) -> None:
    """The task ``name`` is queued. Never raises: the change that it serves has been written, and the tick finds the work."""
    task = TASKS.get(name)
    if task is None:
        log.error("jobs.unknown", job=name)
        return
    try:
        async_task(task.path, **payload, q_options={"group": name, "timeout": task.timeout_seconds, "cluster": task.line.value})
    except DatabaseError:
        log.exception("jobs.not_queued", job=name)
