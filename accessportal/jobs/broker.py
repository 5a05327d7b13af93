"""The queue's table, read by each process for itself."""

from __future__ import annotations

import inspect
import pydoc
from collections.abc import Collection, Mapping
from datetime import datetime, timedelta
from time import sleep
from typing import Any

import structlog
from django.db.models import Q
from django_q.brokers.orm import ORM
from django_q.conf import Conf
from django_q.signing import BadSignature, SignedPackage

from accessportal.kernel.clock import SystemClock
from accessportal.kernel.moments import furthest

# A task that is handed out is its taker's for so long, and is held on to while it runs: what a dead process had comes back soon.
_HELD_FOR = timedelta(minutes=1)
_CLOCK = SystemClock()

log = structlog.get_logger(__name__)


class LineBroker(ORM):  # type: ignore[misc]  # django-q2 has no types
    """django-q2's own, but that each process takes one task, the oldest, and that a hold is short and renewed. A task whose function or
    argument this version does not have was queued by a newer one: it is told and stays for a worker that knows it."""

    def __init__(self, list_key: str | None = None) -> None:
        super().__init__(list_key)
        self._left_alone: set[int] = set()

    def timeout(self, task: Any) -> datetime:
        return _CLOCK.now() + _HELD_FOR

    def dequeue(self) -> list[tuple[int, str]] | None:
        """The oldest task that nobody holds, now held; none: empty when another was faster, ``None`` after a while without work."""
        now = _CLOCK.now()
        # A hold that reaches further than any may is from a clock that was wrong.
        free = Q(lock__lte=now) | Q(lock__gt=furthest(now, longest=_HELD_FOR))
        waiting = self.get_connection().filter(free, key=self.list_key).exclude(pk__in=self._left_alone)
        task = waiting.order_by("pk").first()
        if task is None:
            sleep(Conf.POLL)
            return None
        unknown = _unknown_in(task.payload)
        if unknown:
            self._left_alone.add(task.pk)
            log.warning("worker.left_to_newer", row=task.pk, func=unknown)
            return []
        is_ours = self.get_connection().filter(pk=task.pk, lock=task.lock).update(lock=self.timeout(task))
        return [(task.pk, task.payload)] if is_ours else []

    def hold(self, rows: Collection[int]) -> None:
        """Go on holding tasks that are under way, of any line."""
        self.get_connection().filter(pk__in=rows).update(lock=self.timeout(None))


def _unknown_in(payload: str) -> str:
    """The function that the task calls, if this version can't call it so; empty otherwise, and for what can't be read."""
    try:
        task: Mapping[str, Any] = SignedPackage.loads(payload)
    except (TypeError, BadSignature):
        return ""
    if callable(task["func"]):
        return ""
    try:
        function: Any = pydoc.locate(task["func"])
        inspect.signature(function).bind(*task["args"], **task["kwargs"])
    except (TypeError, pydoc.ErrorDuringImport):
        return str(task["func"])
    return ""
