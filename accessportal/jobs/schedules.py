"""The one list of what the queue runs, and how what runs by itself gets into the queue's table."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from enum import StrEnum

import structlog
from django.conf import settings
from django.db import transaction
from django.utils.module_loading import import_string
from django_q.models import Schedule

from accessportal.kernel.moments import furthest


class Line(StrEnum):
    """A line that work waits in, by its name in the queue's table. Each has processes of its own, so that what is slow in one delays
    nothing in another."""

    # What ends access: nothing may stand before it, not even a hundred grants.
    SWEEP = "sweep"
    # What somebody waits for.
    URGENT = "urgent"
    # The queue's only name before there were lines: what waits there from then is still done.
    SLOW = "accessportal"

    @property
    def part(self) -> str:
        """Its name among the heartbeats."""
        return f"{self.name.lower()}_line"


@dataclass(frozen=True, slots=True)
class Job:
    """The task of that name, or ``task``, killed after ``timeout_seconds`` (its work is picked up by the next run). It runs by itself
    every so many ``minutes``; 0: only when a change asks for it."""

    name: str
    timeout_seconds: int
    minutes: int = 0
    line: Line = Line.SLOW
    task: str = ""
    arguments: Mapping[str, str] = field(default_factory=dict)

    @property
    def path(self) -> str:
        return f"accessportal.jobs.tasks.{self.task or self.name}"


_LISTED = (
    # A tick comes 60 to 65 s after the last one; its look-ahead covers the 30 s more that a worker takes to replace a dead process.
    Job("tick", minutes=1, timeout_seconds=150, line=Line.SWEEP),
    Job("watch_ends", timeout_seconds=300, line=Line.SWEEP),
    Job("end_departed", timeout_seconds=150, line=Line.URGENT),
    Job("carry_out_served", timeout_seconds=150, line=Line.URGENT),
    Job("carry_out", timeout_seconds=150, line=Line.URGENT),
    # It takes access away, too.
    Job("freeze_leases", minutes=1, timeout_seconds=150, line=Line.SWEEP),
    Job("publish_events", minutes=1, timeout_seconds=150),
    # A day that is over is written within the hour; a run that has many begins none in its last quarter.
    Job("export_evidence", minutes=60, timeout_seconds=900),
    Job("remove_old_events", minutes=24 * 60, timeout_seconds=3600),
    Job("follow_history", minutes=1, timeout_seconds=150),
    Job("mirror_directory", minutes=1, timeout_seconds=150),
    Job("compare_directory", minutes=24 * 60, timeout_seconds=900),
    Job("reconcile_assignments", minutes=15, timeout_seconds=600),
    Job("mend_difference", timeout_seconds=150),
    Job("compare_subjects", minutes=60, timeout_seconds=900),
    Job("sync_catalog", minutes=10, timeout_seconds=900),
    Job("expire_sandboxes", minutes=1, timeout_seconds=150, line=Line.SWEEP),
    Job("serve_line", minutes=1, timeout_seconds=150, line=Line.URGENT),
    Job("clean_sandboxes", minutes=1, timeout_seconds=150),
    Job("clean_accounts", minutes=1, timeout_seconds=150),
    Job("sync_pool", minutes=60, timeout_seconds=900),
    Job("mind_budgets", minutes=15, timeout_seconds=900),
    Job("read_spend", minutes=6 * 60, timeout_seconds=900),
    Job("sweep_authz", minutes=settings.AUTHZ_SWEEP_MINUTES, timeout_seconds=900),
    Job("go_on_erasing", minutes=10, timeout_seconds=3600),
    Job("erase_former", timeout_seconds=3600),
    Job("delete_scopes", minutes=1, timeout_seconds=150),
    # Below the hold of a run (sandboxes.operations.runs.HOLD): a second performer comes only when the first is surely dead.
    Job("run_sandbox_work", minutes=1, timeout_seconds=840),
    Job("sync_sandboxes", minutes=5, timeout_seconds=900),
    Job("count_accounts", minutes=5, timeout_seconds=300),
    *(
        Job(f"show_{line.part}", minutes=1, timeout_seconds=30, line=line, task="show_line", arguments={"line": line.value})
        for line in Line
    ),
)
JOBS: Mapping[str, Job] = {job.name: job for job in _LISTED}
SCHEDULES = [job for job in _LISTED if job.minutes]

_OURS = "accessportal.jobs."
# Longer than until this is applied again, and so again and again, while an older version runs.
_SET_ASIDE = timedelta(minutes=10)
log = structlog.get_logger(__name__)


def apply_schedules(*, now: datetime, removes_unknown: bool = False) -> dict[str, str]:
    """Make the queue's table schedule exactly our jobs, and say of each what changed. A kept one keeps its next run, unless that lies
    further away than one period. One whose function this version does not have is a newer version's and ``left alone``, unless
    ``removes_unknown``: then nobody runs a newer one."""
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


def _apply(job: Job, now: datetime) -> str:
    wanted = {
        "func": job.path,
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
