"""Whether the portal can do its work right now, part by part."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import datetime

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
    """Ready means: every DynamoDB table answers, Django's database answers, and the worker showed itself of late."""
    checks: Mapping[str, Callable[[datetime], str]] = {"tables": _tables, "worker": _worker}
    found = {part: check(now) for part, check in checks.items()}
    return Readiness(missing={part: problem for part, problem in found.items() if problem})


def _tables(_now: datetime) -> str:
    silent = silent_tables()
    if not silent:
        return ""
    named = ", ".join(f"{table} ({code})" for table, code in sorted(silent.items()))
    return f"These tables do not answer: {named}. Where they are missing, run create_tables."


def _worker(now: datetime) -> str:
    try:
        last = heartbeats.last_beat(heartbeats.WORKER)
    except DatabaseError as error:
        return f"Django's database does not answer ({type(error).__name__}). Check PORTAL_DATABASE_URL, and run migrate once."
    if last is None:
        return "The worker has never shown itself. Start it with: python manage.py qcluster"
    if not last.is_fresh(now):
        return f"The worker was last seen at {last.beat_at:%Y-%m-%d %H:%M:%S} UTC. Start it again with: python manage.py qcluster"
    return ""
