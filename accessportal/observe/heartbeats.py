"""Signs of life of the background parts. They say that the machinery turns, never that a piece of work was done."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from django.db import transaction

from accessportal.kernel import moments
from accessportal.observe.models import Heartbeat

RECONCILE = "reconcile_assignments"
DRIFT = "drift"
"""In the detail of ``RECONCILE``: what the last comparison found to differ."""
FINISHED_AT = "finished_at"
"""In the detail of ``RECONCILE``: when that comparison ended, in epoch seconds."""
EVIDENCE = "export_evidence"
NEWEST_DAY_AT = "newest_day_at"
"""In the detail of ``EVIDENCE``: when the last day that was exported began, in epoch seconds."""
HISTORY = "follow_history"
KNOWN_UNTIL = "known_until"
"""In the detail of ``HISTORY``: up to when it is told who had what, in epoch seconds; not there while that is being made."""
ERASING = "erase_former"
"""Its detail tells by pseudonym what became of an order to erase somebody, in words, while it is not done."""
# The lines of the queue: every minute a small task waits its turn in each, like any other, and beats (jobs.schedules).
LINES = ("sweep_line", "urgent_line", "slow_line")
FRESH_FOR = timedelta(minutes=2)
# The web servers, all together: that Django's database takes writes.
WEB = "web"
TICK = "tick"
# It may stay for what ends within a minute and a half, and is ended after two and a half.
TICK_FRESH_FOR = timedelta(minutes=5)


@dataclass(frozen=True, slots=True)
class Beat:
    """The last sign of life of a part. ``detail`` is what it reported; ``is_ok`` whether that run succeeded."""

    part: str
    beat_at: datetime
    is_ok: bool
    detail: Mapping[str, Any]

    def is_fresh(self, now: datetime, *, within: timedelta = FRESH_FOR) -> bool:
        return moments.is_recent(self.beat_at, now=now, within=within)


def beat(part: str, *, now: datetime, is_ok: bool = True, detail: Mapping[str, Any] | None = None) -> None:
    """``part`` is alive at ``now``; ``detail`` must be JSON."""
    Heartbeat.objects.update_or_create(part=part, defaults={"beat_at": now, "is_ok": is_ok, "detail": dict(detail or {})})


def tell(part: str, detail: Mapping[str, Any]) -> None:
    """What ``part`` reported is this from now on; it is no sign of life."""
    Heartbeat.objects.filter(part=part).update(detail=dict(detail))


def tell_of(part: str, name: str, words: str, *, now: datetime) -> None:
    """What ``part`` reports of ``name`` is this from now on; without ``words``, nothing."""
    with transaction.atomic():
        Heartbeat.objects.get_or_create(part=part, defaults={"beat_at": now})
        detail = Heartbeat.objects.select_for_update().get(part=part).detail
        tell(part, {one: told for one, told in detail.items() if one != name} | ({name: words} if words else {}))


def tell_of_difference(finding_id: str, note: str) -> None:
    """Beside what the last comparison found stands this ``note`` from now on; without one it is off the list."""
    with transaction.atomic():
        row = Heartbeat.objects.select_for_update().filter(part=RECONCILE).first()
        found = row.detail.get(DRIFT, []) if row is not None else []
        noted = [one | {"note": note} if one["finding_id"] == finding_id else one for one in found]
        if row is not None:
            tell(RECONCILE, {**row.detail, DRIFT: noted if note else [one for one in found if one["finding_id"] != finding_id]})


def fail(part: str, *, now: datetime) -> None:
    """A run of ``part`` has failed. When it last showed itself stays, and gets older until a run comes to its end."""
    if not Heartbeat.objects.filter(part=part).update(is_ok=False):
        Heartbeat.objects.get_or_create(part=part, defaults={"beat_at": now, "is_ok": False})


def mend(part: str) -> None:
    """Whatever failed in ``part`` is over, without a run that has something to tell."""
    Heartbeat.objects.filter(part=part, is_ok=False).update(is_ok=True)


def forget(part: str) -> None:
    """``part`` is switched off: what failed in it is over, and nothing that it told grows old."""
    Heartbeat.objects.filter(part=part).update(is_ok=True, detail={})


def last_beat(part: str) -> Beat | None:
    """The last sign of life, or ``None`` when there never was one."""
    row = Heartbeat.objects.filter(part=part).first()
    return None if row is None else _beat(row)


def all_beats() -> tuple[Beat, ...]:
    return tuple(_beat(row) for row in Heartbeat.objects.order_by("part"))


def _beat(row: Heartbeat) -> Beat:
    return Beat(part=row.part, beat_at=row.beat_at, is_ok=row.is_ok, detail=row.detail)
