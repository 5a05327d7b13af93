"""The one list of what runs by itself, and how it gets into the queue's table."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta

import structlog
from django.db import transaction
from django.utils.module_loading import import_string
from django_q.models import Schedule

from accessportal.jobs.lines import Line
from accessportal.kernel.moments import furthest


@dataclass(frozen=True, slots=True)
class JobSchedule:
    """``task`` with ``arguments`` every ``minutes``, killed after ``timeout_seconds`` (its work is picked up by the next run)."""

    name: str
    task: str
    minutes: int
    timeout_seconds: int
    line: Line = Line.SLOW
    arguments: Mapping[str, str] = field(default_factory=dict)


# A tick comes 60 to 65 s after the last one; its look-ahead covers the 30 s more that a worker takes to replace a dead process.
SCHEDULES: tuple[JobSchedule, ...] = (
    JobSchedule("tick", "accessportal.jobs.tasks.tick", minutes=1, timeout_seconds=150, line=Line.SWEEP),
    JobSchedule("publish_events", "accessportal.jobs.tasks.publish_events", minutes=1, timeout_seconds=150),
    JobSchedule("mirror_directory", "accessportal.jobs.tasks.mirror_directory", minutes=1, timeout_seconds=150),
    JobSchedule("compare_directory", "accessportal.jobs.tasks.compare_directory", minutes=24 * 60, timeout_seconds=900),
    JobSchedule("reconcile_assignments", "accessportal.jobs.tasks.reconcile_assignments", minutes=15, timeout_seconds=600),
    JobSchedule("compare_subjects", "accessportal.jobs.tasks.compare_subjects", minutes=60, timeout_seconds=900),
    JobSchedule("sync_catalog", "accessportal.jobs.tasks.sync_catalog", minutes=10, timeout_seconds=900),
    JobSchedule("expire_sandboxes", "accessportal.jobs.tasks.expire_sandboxes", minutes=1, timeout_seconds=150, line=Line.SWEEP),
    JobSchedule("clean_sandboxes", "accessportal.jobs.tasks.clean_sandboxes", minutes=1, timeout_seconds=150),
    # Below the hold of a run (sandboxes.operations.runs.HOLD): a second performer comes only when the first is surely dead.
    JobSchedule("run_sandbox_work", "accessportal.jobs.tasks.run_sandbox_work", minutes=1, timeout_seconds=840),
    JobSchedule("sync_sandboxes", "accessportal.jobs.tasks.sync_sandboxes", minutes=5, timeout_seconds=900),
    *(
        JobSchedule(
            f"show_{line.part}",
            "accessportal.jobs.tasks.show_line",
            minutes=1,
            timeout_seconds=30,
            line=line,
            arguments={"line": line.value},
        )
        for line in Line
    ),
)

_OURS = "accessportal.jobs."
# Longer than until this is applied again, and so again and again, while an older version runs.
_SET_ASIDE = timedelta(minutes=10)
log = structlog.get_logger(__name__)


def apply_schedules(*, now: datetime, removes_unknown: bool = False) -> dict[str, str]:
    """Of our tasks the queue's table schedules exactly these; says of each what changed.

    ``added``, ``changed``, ``kept``, or ``removed`` for one that is no longer listed. A kept schedule keeps its next run,
    unless that lies further away than one period (a clock that was wrong once must not stop the tick for long). One whose function
    this version does not have is a newer version's and ``left alone``, unless ``removes_unknown``: then nobody runs a newer one.
    """
    outcome: dict[str, str] = {}
    with transaction.atomic():
        for gone in Schedule.objects.filter(func__startswith=_OURS).exclude(name__in=[job.name for job in SCHEDULES]):
            if not (removes_unknown or _is_known(gone.func)):
                outcome[str(gone.name)] = "left alone"
                # Nobody here does what it queues; whoever knows it brings its next run back at once.
                Schedule.objects.filter(pk=gone.pk, next_run__lt=now + _SET_ASIDE).update(next_run=now + _SET_ASIDE)
                log.warning("jobs.schedule_left_to_newer", schedule=gone.name, func=gone.func)
                continue
            outcome[str(gone.name)] = "removed"
            gone.delete()
        for job in SCHEDULES:
            outcome[job.name] = _apply(job, now)
    return outcome


def _is_known(func: str) -> bool:
    try:
        import_string(func)
    except ImportError:
        return False
    return True


def _apply(job: JobSchedule, now: datetime) -> str:
    wanted = {
        "func": job.task,
        "schedule_type": Schedule.MINUTES,
        "minutes": job.minutes,
        "repeats": -1,
        "kwargs": repr({**job.arguments, "q_options": {"timeout": job.timeout_seconds, "cluster": job.line.value}}),
    }
    rows = list(Schedule.objects.filter(name=job.name).order_by("pk"))
    for double in rows[1:]:
        double.delete()
    if not rows:
        Schedule.objects.create(name=job.name, next_run=now, **wanted)
        return "added"
    row = rows[0]
    is_same = all(getattr(row, name) == value for name, value in wanted.items())
    is_near = row.next_run is not None and row.next_run <= furthest(now, longest=timedelta(minutes=job.minutes))
    if is_same and is_near:
        return "kept"
    for name, value in wanted.items():
        setattr(row, name, value)
    row.next_run = row.next_run if is_near else now
    row.save()
    return "changed"
