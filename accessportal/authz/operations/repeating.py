"""Requests of programs that may come twice: the key that a caller gave to one is written with what it asked for, in one transaction."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import TypeVar

from accessportal.authz import store
from accessportal.authz.policy.rights import Caller
from accessportal.kernel.errors import Conflict, NoAnswer, NotFound, Unavailable
from accessportal.store.keys import join_key
from accessportal.store.transactions import ConditionFailed, Step, until_written

T = TypeVar("T")
CONTENDED = Unavailable("Too many others change this record at once. Try again.", code="authz_contended")


@dataclass(frozen=True, slots=True)
class RequestKey:
    """``text`` names the request among those of its caller, for a day; ``request``: all that it asks for."""

    text: str
    request: str

    @property
    def request_hash(self) -> str:
        return hashlib.sha256(self.request.encode()).hexdigest()


def once(key: RequestKey | None, attempt: Callable[[Sequence[Step]], T], *, again: Callable[[], T], caller: Caller, now: datetime) -> T:
    """What ``attempt`` returns, which writes the key with the rest, until nobody comes between; ``again`` when that was written before.

    :raises Conflict: ``IDEMPOTENCY_MISMATCH``, when the key stands for another request.
    """

    def write(further: Sequence[Step]) -> T:
        return until_written(lambda: attempt(further), contended=CONTENDED)

    if key is None:
        return write(())
    name = join_key(caller.actor.name, key.text)
    if _is_written(name, key, now):
        return again()
    try:
        return write([store.key_step(name, key.request_hash, now=now)])
    except (ConditionFailed, Conflict, NotFound) as error:
        # The same request, sent twice at once, was faster.
        if _is_written(name, key, now):
            return again()
        if isinstance(error, ConditionFailed):
            raise NoAnswer("This key came several times at once. Try again.", code="key_contended") from error
        raise


def _is_written(name: str, key: RequestKey, now: datetime) -> bool:
    found = store.request_of_key(name, now=now)
    if found not in (None, key.request_hash):
        message = "This key stands for another request of today's. Use a new key for a new request."
        raise Conflict(message, code="IDEMPOTENCY_MISMATCH")
    return found is not None
