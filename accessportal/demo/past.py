"""What the demo's people have asked for in twelve weeks, and what became of it: ``past.csv``, lived through in the order of its moments."""

from __future__ import annotations

import csv
import heapq
from collections.abc import Iterator, Mapping
from datetime import datetime, timedelta
from pathlib import Path

from accessportal.access_requests import operations
from accessportal.access_requests.states import AccessRequest
from accessportal.demo.history import PastClock, nothing_queued
from accessportal.demo.requests import ask
from accessportal.kernel.actors import Actor, person, system
from accessportal.kernel.durations import parse_duration
from accessportal.twin.world_changes import change_by_hand, close_account

PAST_DAYS = 84
_FILE = Path(__file__).parent / "past.csv"
_TICK = system("tick")
_UNTIL_SEEN = timedelta(minutes=9)
_UNTIL_WORK = timedelta(seconds=2)
_LOOK = timedelta(milliseconds=50)
# A failure is told, and tried again: so often before the worker of the demo goes on with it.
_TRIES = 6

# By hand, at the console of AWS. The second was granted a while ago (past.csv) and has not ended.
_GIVEN = ("carl@example.com", "storefront-staging", "ReadOnlyAccess")
_TAKEN = ("nina@example.com", "payments-staging", "ReadOnlyAccess")

Life = Iterator[datetime]
"""Of one request. Each step yields the moment of the next, and goes on once that has come."""


def read_past() -> list[dict[str, str]]:
    """The lines of the file, oldest first."""
    with _FILE.open(newline="") as file:
        return list(csv.DictReader(file))


def live_through(*, now: datetime) -> None:
    """Have every request of the past asked, decided, granted and taken back in Identity Center, each at its moment. To be called once the
    rules are in force and the catalog is known, while the jobs of the twin end at once. What has not ended yet is left to the worker."""
    lives: list[tuple[datetime, int, Life]] = []
    for number, told in enumerate(read_past()):
        asked_at = now - timedelta(seconds=parse_duration(told["ago"]))
        lives.append((asked_at, number, _life(f"past-{number}", told, asked_at)))
    heapq.heapify(lives)
    with nothing_queued(), operations.lifted_limits():
        while lives:
            _, number, life = heapq.heappop(lives)
            next_at = next(life, None)
            if next_at is not None:
                heapq.heappush(lives, (next_at, number, life))


def change_outside() -> None:
    """What the comparison with Identity Center finds: something that nobody asked for is there, and something that was granted is gone."""
    for what, is_wanted in ((_GIVEN, True), (_TAKEN, False)):
        email, account, permission_set = what
        change_by_hand(email=email, account=account, permission_set=permission_set, is_wanted=is_wanted)


def _life(name: str, told: Mapping[str, str], at: datetime) -> Life:
    request = _asked(name, told, at)
    outcome = told["outcome"]
    for who in told["by"].split():
        at += _UNTIL_SEEN
        yield at
        decide = operations.deny if outcome == "denied" else operations.approve
        request = decide(request_id=request.request_id, reason=told["words"], actor=_person(who), now=at)
    if outcome == "cancelled":
        yield at + _UNTIL_SEEN
        operations.cancel(request_id=request.request_id, actor=_person(told["who"]), now=at + _UNTIL_SEEN)
    elif outcome == "lapsed":
        yield request.expires_at
        operations.lapse(request_id=request.request_id, actor=_TICK, now=request.expires_at)
    elif outcome not in {"denied", "pending"}:
        yield from _held(request, told, at)


def _asked(name: str, told: Mapping[str, str], at: datetime) -> AccessRequest:
    """Of an account with a permission set, or of a group with a role."""
    place, what = told["what"].split()
    kind, target = (
        ("group", {"group": place, "role": what}) if "/" in place else ("aws_account", {"account": place, "permission_set": what})
    )
    seconds = parse_duration(told["length"])
    return ask(told["who"], kind, target, seconds=seconds, reason=told["reason"], ticket=told["ticket"], name=name, now=at)


def _held(request: AccessRequest, told: Mapping[str, str], at: datetime) -> Life:
    """Granted, and gone: at its end, before that by whoever had it, or not yet."""
    at += _UNTIL_WORK
    yield at
    request = operations.carry_out(request_id=request.request_id, clock=PastClock(at, look=_LOOK))
    if told["outcome"] == "active":
        return
    if told["outcome"] == "stuck":
        # Who is in an account can't be changed any more once it is closed.
        close_account(told["what"].split()[0])
    if told["outcome"] == "ended":
        at += (request.expires_at - at) / 2
        yield at
        operations.end(request_id=request.request_id, reason=told["words"], actor=_person(told["who"]), now=at)
    else:
        at = request.expires_at
        yield at
        operations.expire(request_id=request.request_id, actor=_TICK, now=at)
    for _ in range(_TRIES):
        at += _UNTIL_WORK
        yield at
        request = operations.carry_out(request_id=request.request_id, clock=PastClock(at, look=_LOOK))
        if request.work_due_at is None:
            return
        at = request.work_due_at


def _person(name: str) -> Actor:
    return person(f"{name}@example.com")
