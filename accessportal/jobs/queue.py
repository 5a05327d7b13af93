"""The kernel's ``after_commit`` port, on django-q2's queue in Django's database."""

from __future__ import annotations

import structlog
from django.db import Error as DatabaseError
from django_q.tasks import async_task

from accessportal.jobs.schedules import JOBS

log = structlog.get_logger(__name__)


def enqueue(name: str, /, **payload: str) -> None:
    """The job ``name`` is queued. Never raises: the change that it serves has been written, and the tick finds the work."""
    job = JOBS.get(name)
    if job is None:
        log.error("jobs.unknown", job=name)
        return
    try:
        async_task(job.path, **payload, q_options={"group": name, "timeout": job.timeout_seconds, "cluster": job.line.value})
    except DatabaseError:
        log.exception("jobs.not_queued", job=name)
