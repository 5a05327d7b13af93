"""What a process remembers for a while: what an issuer published or how it failed, and tries of passwords."""

from __future__ import annotations

import time
from typing import Any

from django.core.cache.backends.base import DEFAULT_TIMEOUT
from django.core.cache.backends.locmem import LocMemCache


class SteadyMemory(LocMemCache):
    """Django's, by a clock that nobody sets: what was kept while the machine's was ahead lasts no longer for it."""

    def get_backend_timeout(self, timeout: Any = DEFAULT_TIMEOUT) -> float | None:
        seconds = self.default_timeout if timeout == DEFAULT_TIMEOUT else timeout
        return None if seconds is None else time.monotonic() + seconds

    def _has_expired(self, key: str) -> bool:
        until = self._expire_info.get(key, -1)  # type: ignore[attr-defined]  # the stubs leave it out
        return until is not None and until <= time.monotonic()
