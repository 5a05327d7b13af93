"""A past for the demo and the benchmarks: requests of every kind, made by the same operations that people use."""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor, as_completed
from contextlib import contextmanager
from datetime import datetime, timedelta

from django.db import connections

from accessportal.access_requests import operations, queries
from accessportal.access_requests.states import AccessRequest, Status
from accessportal.demo.requests import ask
from accessportal.kernel.actors import person, system
from accessportal.kernel.errors import Conflict
from accessportal.kernel.ports import set_after_commit

_ALICE = person("alice@example.com")
_BOB = person("bob@example.com")
_THREADS = 8
_DAYS_BACK = 60
_APART_SECONDS = 77_777
_HISTORY = system("demo")
# Of twenty: what became of them. PENDING and ACTIVE ones are asked for now, all others in the past.
_FATES = ("revoked",) * 11 + ("denied",) * 3 + ("cancelled",) * 2 + ("lapsed",) * 2 + ("pending", "active")


class PastClock:
    """The clock of a past moment: waiting moves it, and nobody waits. Each ``look`` at it takes so long."""

    def __init__(self, now: datetime, *, look: timedelta = timedelta()) -> None:
        self._now = now
        self._look = look

    def now(self) -> datetime:
        self._now += self._look
        return self._now

    def sleep(self, seconds: float) -> None:
        self._now += timedelta(seconds=seconds)


def make_history(*, count: int, now: datetime, days: int = _DAYS_BACK) -> Iterator[AccessRequest]:
    """Make ``count`` requests of the last ``days`` and yield each. Each has a fixed submission id, so that a repetition makes only what is
    missing. They end before anything was created outside, so AWS is not called."""
    with nothing_queued(), operations.lifted_limits(), ThreadPoolExecutor(_THREADS, thread_name_prefix="history") as pool:
        for future in as_completed([pool.submit(_one, number, now, days) for number in range(count)]):
            yield future.result()


def _one(number: int, now: datetime, days: int) -> AccessRequest:
    try:
        return _live(number, _FATES[number % len(_FATES)], now, days)
    finally:
        connections.close_all()


def _live(number: int, fate: str, now: datetime, days: int = _DAYS_BACK) -> AccessRequest:
    """A request with this fate. Beside a running portal its worker may be faster: then it is over in the worker's way."""
    is_open = fate in {"pending", "active"}
    at = now if is_open else now - timedelta(days=days) + timedelta(seconds=number * _APART_SECONDS % (days * 86_400 - 172_800))
    request = _asked(number, at, at_once=fate in {"revoked", "active"})
    if is_open or request.status.is_terminal:
        return request
    try:
        return _met(request, fate, at + timedelta(minutes=5))
    except Conflict:
        return queries.get(request_id=request.request_id, actor=_HISTORY, now=now)


def _met(request: AccessRequest, fate: str, later: datetime) -> AccessRequest:
    if fate == "denied":
        return operations.deny(request_id=request.request_id, reason="Use the staging account for this.", actor=_BOB, now=later)
    if fate == "cancelled":
        return operations.cancel(request_id=request.request_id, actor=_ALICE, now=later)
    if fate == "lapsed":
        return operations.lapse(request_id=request.request_id, actor=_HISTORY, now=request.expires_at)
    if request.status is Status.ACTIVE and request.granted_at is None:
        operations.end(request_id=request.request_id, reason="Done early.", actor=_ALICE, now=later)
    return operations.carry_out(request_id=request.request_id, clock=PastClock(later))


def _asked(number: int, at: datetime, *, at_once: bool) -> AccessRequest:
    account, permission_set, ticket = (
        ("payments-dev", "PowerUserAccess", "") if at_once else ("payments-prod", "ReadOnlyAccess", f"CHG-{number}")
    )
    target, reason = {"account": account, "permission_set": permission_set}, f"Demo history {number}"
    return ask("alice", "aws_account", target, seconds=3_600, reason=reason, ticket=ticket, name=f"history-{number}", now=at)


@contextmanager
def nothing_queued() -> Iterator[None]:
    """A hundred thousand jobs for work that is done here at once would only keep the worker busy."""

    def nobody(_name: str, /, **_payload: str) -> None:
        return

    former = set_after_commit(nobody)
    try:
        yield
    finally:
        set_after_commit(former)
