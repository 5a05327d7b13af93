"""How often a token may ask: so many requests in each minute, all server processes together.

A process reserves a block of the minute's requests with one write and hands it out from memory, so most requests cost none.
"""

from __future__ import annotations

import threading
from dataclasses import dataclass, field
from datetime import datetime

import structlog

from accessportal.kernel.errors import Unavailable
from accessportal.tokens import policy, store
from accessportal.tokens.states import ApiToken

log = structlog.get_logger(__name__)


@dataclass
class _Share:
    """What this process still has of a token's requests in the minute ``window_at``."""

    window_at: int = 0
    left: int = 0
    is_exhausted: bool = False
    lock: threading.Lock = field(default_factory=threading.Lock)


class RateLimit:
    """One for each process. Threads that find nothing left wait for the one that reserves; they do not reserve too."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._shares: dict[str, _Share] = {}

    def claim(self, token: ApiToken, *, now: datetime) -> float:
        """Use one of the token's requests; return the seconds until it may ask again, 0.0 for now. A store that does not answer lets
        requests through: limits are for fairness, and must not be an outage of their own."""
        with self._lock:
            share = self._shares.setdefault(token.token_id, _Share())
        window_at = policy.window_of(now)
        with share.lock:
            # Whoever came before the minute turned counts in the one that others have begun: each way back would cost a block of it.
            if share.window_at not in (window_at, window_at + policy.WINDOW_SECONDS):
                share.window_at, share.left, share.is_exhausted = window_at, 0, False
            if not share.left and not share.is_exhausted:
                share.left = _reserved(token, share.window_at)
                # Remembered, or a client that keeps asking would cost a write each time that it is refused.
                share.is_exhausted = not share.left
            if share.left:
                share.left -= 1
                return 0.0
            return share.window_at + policy.WINDOW_SECONDS - now.timestamp()


def _reserved(token: ApiToken, window_at: int) -> int:
    block = policy.block_of(token.rate_per_minute)
    try:
        return store.reserve(token.token_id, block=block, most=token.rate_per_minute, window_at=window_at)
    except Unavailable as error:
        log.warning("clients.rate_not_limited", token_id=token.token_id, error=error.message)
        return block
