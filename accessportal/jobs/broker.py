"""The queue's table, read by each process for itself."""

from __future__ import annotations

from collections.abc import Collection
from datetime import datetime, timedelta
from time import sleep
from typing import Any

from django.db.models import Q
from django_q.brokers.orm import ORM
from django_q.conf import Conf

from accessportal.kernel.clock import SystemClock
from accessportal.kernel.moments import furthest

# A task that is handed out is its taker's for so long, and is held on to while it runs: what a dead process had comes back soon.
_HELD_FOR = timedelta(minutes=1)
_CLOCK = SystemClock()


class LineBroker(ORM):  # type: ignore[misc]  # django-q2 has no types
    """django-q2's own, but that each process takes one task, the oldest, and that a hold is short and renewed."""

    def timeout(self, task: Any) -> datetime:
        return _CLOCK.now() + _HELD_FOR

    def dequeue(self) -> list[tuple[int, str]] | None:
        """The oldest task that nobody holds, now held; none: empty when another was faster, ``None`` after a while without work."""
        now = _CLOCK.now()
        # A hold that reaches further than any may is from a clock that was wrong.
        free = Q(lock__lte=now) | Q(lock__gt=furthest(now, longest=_HELD_FOR))
        task = self.get_connection().filter(free, key=self.list_key).order_by("pk").first()
        if task is None:
            sleep(Conf.POLL)
            return None
        is_ours = self.get_connection().filter(pk=task.pk, lock=task.lock).update(lock=self.timeout(task))
        return [(task.pk, task.payload)] if is_ours else []

    def hold(self, rows: Collection[int]) -> None:
        """Go on holding tasks that are under way, of any line."""
        self.get_connection().filter(pk__in=rows).update(lock=self.timeout(None))
