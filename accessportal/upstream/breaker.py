"""A circuit breaker: after some failures in a row nothing is sent for a while, then one call at a time is tried."""

from __future__ import annotations

import threading
from datetime import datetime, timedelta

from accessportal.kernel.clock import Clock
from accessportal.kernel.moments import is_due


class Breaker:
    """Opens after ``failures`` in a row, for ``rest_seconds``. One for a provider and process."""

    def __init__(self, *, clock: Clock, failures: int = 5, rest_seconds: float = 30.0) -> None:
        self._clock = clock
        self._most = failures
        self._rest = timedelta(seconds=rest_seconds)
        self._lock = threading.Lock()
        self._failures = 0
        self._closed_at: datetime | None = None

    def may_call(self) -> bool:
        """Whether the next call may be sent. While open, one caller in each rest period may: the probe."""
        with self._lock:
            if self._closed_at is None:
                return True
            now = self._clock.now()
            if not is_due(self._closed_at, now=now, longest=self._rest):
                return False
            self._closed_at = now + self._rest
            return True

    def succeeded(self) -> None:
        with self._lock:
            self._failures, self._closed_at = 0, None

    def failed(self) -> None:
        with self._lock:
            self._failures += 1
            if self._failures >= self._most:
                self._closed_at = self._clock.now() + self._rest
