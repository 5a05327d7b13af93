"""Texts that are no token: how many one address may try in a minute, and what is looked at beyond that.

All of it is in the memory of a process, and bounded there. Beyond the limit a text costs the table nothing: the tokens that there
are, are listed once in a while, and only what is one of them is let on to the strong read. So guesses from an address shut no
token out that comes from the same one.
"""

from __future__ import annotations

import hmac
import threading
from collections import OrderedDict
from datetime import datetime, timedelta

from accessportal.kernel.addresses import network_of
from accessportal.kernel.errors import Unavailable
from accessportal.kernel.moments import is_recent
from accessportal.tokens import policy, store
from accessportal.tokens.states import TokenRefused

MOST_WRONG = 30
MOST_ADDRESSES = 10_000
_MOST_TOKENS = 10_000
_LIST_EVERY = timedelta(seconds=10)


class GuessLimit:
    """One for each process. Of more addresses than it remembers, the ones that were wrong first are forgotten."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._window_at = 0
        self._wrong: OrderedDict[str, int] = OrderedDict()

    def wait(self, address: str, *, now: datetime) -> float:
        """Seconds until a wrong text may come from there again; 0.0: one may now."""
        with self._lock:
            window_at = self._turned(now)
            is_over = self._wrong.get(network_of(address), 0) >= MOST_WRONG
        return window_at + policy.WINDOW_SECONDS - now.timestamp() if is_over else 0.0

    def note(self, address: str, *, now: datetime) -> None:
        """A wrong text came from there."""
        network = network_of(address)
        with self._lock:
            self._turned(now)
            self._wrong[network] = self._wrong.get(network, 0) + 1
            if len(self._wrong) > MOST_ADDRESSES:
                self._wrong.popitem(last=False)

    def _turned(self, now: datetime) -> int:
        window_at = policy.window_of(now)
        if window_at != self._window_at:
            self._window_at = window_at
            self._wrong.clear()
        return window_at


class KnownTokens:
    """The tokens that nobody revoked, as last listed: one made since is known some seconds later."""

    def __init__(self) -> None:
        self._listing = threading.Lock()
        self._hashes: dict[str, str] = {}
        self._listed_at: datetime | None = None

    def holds(self, text: str, *, now: datetime) -> bool:
        """Whether ``text`` is worth a read: a token as listed, or nobody can say."""
        try:
            token_id, secret = policy.parts_of(text)
        except TokenRefused:
            return False
        if self._is_listed(token_id, secret):
            return True
        if self._listed_at is not None and is_recent(self._listed_at, now=now, within=_LIST_EVERY):
            return False
        # Nobody stands behind a list that does not come: guesses of one address must not hold every thread, one after the other.
        if not self._listing.acquire(blocking=False):
            return True
        try:
            self._hashes, self._listed_at = store.unrevoked_hashes(most=_MOST_TOKENS), now
        except Unavailable:
            return True
        finally:
            self._listing.release()
        return self._is_listed(token_id, secret)

    def _is_listed(self, token_id: str, secret: str) -> bool:
        if len(self._hashes) >= _MOST_TOKENS:
            return True
        return hmac.compare_digest(self._hashes.get(token_id, ""), policy.hash_of(secret))
