"""Whether the portal can do its work right now, part by part."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import datetime
from functools import partial

from django.db import DatabaseError

from accessportal.observe import heartbeats
from accessportal.store.schema import silent_tables


@dataclass(frozen=True, slots=True)
class Readiness:
    """``missing`` names each part that is not ready and says why, in words; empty means ready."""

    missing: Mapping[str, str]

    @property
    def is_ready(self) -> bool:
        return not self.missing


def readiness(*, now: datetime) -> Readiness:
    """Ready means: every DynamoDB table answers, Django's database answers, and each line of jobs was served of late."""
    checks: dict[str, Callable[[], str]] = {"tables": _tables} | {line: partial(_line, line, now) for line in heartbeats.LINES}
    found = {part: check() for part, check in checks.items()}
    return Readiness(missing={part: problem for part, problem in found.items() if problem})


def _tables() -> str:
    silent = silent_tables()
    if not silent:
        return ""
    named = ", ".join(f"{table} ({code})" for table, code in sorted(silent.items()))
    return f"These tables do not answer: {named}. Where they are missing, run create_tables."


def _line(line: str, now: datetime) -> str:
    try:
        last = heartbeats.last_beat(line)
    except DatabaseError as error:
        return f"Django's database does not answer ({type(error).__name__}). Check PORTAL_DATABASE_URL, and run migrate once."
    if last is None:
        return "No job of this line was ever done. Start the worker with: python manage.py run_worker"
    if not last.is_fresh(now):
        at = f"{last.beat_at:%Y-%m-%d %H:%M:%S} UTC"
        return f"A job of this line was last done at {at}. Look at the worker's log; start it with: python manage.py run_worker"
    return ""
