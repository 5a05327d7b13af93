"""What else to know about a request before deciding it: pure, from the same person's other requests and the rule's latest ones."""

from __future__ import annotations

import statistics
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

from accessportal.access_requests.kind import kind_named
from accessportal.access_requests.states import AccessRequest, Status
from accessportal.kernel.pages import Page, Unreadable
from accessportal.web.presenting import words_for_time

_LOOK_BACK = timedelta(days=90)
_GRANTED = frozenset({Status.ACTIVE, Status.REVOKED})


@dataclass(frozen=True, slots=True)
class Context:
    """``similar`` says how often the same person had asked for the same thing before, and what came of it; ``holds`` is what they hold
    in the same account or group now, ``overlaps`` that it is this very thing; ``unreadable`` is not in it."""

    similar: str
    holds: tuple[AccessRequest, ...]
    overlaps: bool
    unreadable: tuple[Unreadable, ...]


@dataclass(frozen=True, slots=True)
class Habit:
    """What came of the rule's latest requests, and how long their decisions took, mostly, in words; empty where nobody decided any."""

    outcome: str
    usual: str


def habit_of(latest: Sequence[AccessRequest]) -> Habit:
    """``latest``: some of the newest requests by one rule."""
    over = [one for one in latest if one.status is not Status.PENDING]
    taken = [(one.decided_at - one.requested_at).total_seconds() for one in over if one.decided_at and one.approval.required]
    granted, refused = _count(over, _GRANTED), _count(over, {Status.DENIED})
    outcome = f"{len(over)} by this rule, {_outcome(len(over), granted=granted, refused=refused, pending=0)}" if over else ""
    return Habit(outcome, words_for_time(statistics.median(taken)) if taken else "")


def held_now(request: AccessRequest, open_now: Sequence[AccessRequest], *, now: datetime) -> tuple[AccessRequest, ...]:
    """Of what the subject has open, what they hold, where this is asked for first."""
    holds = [one for one in open_now if one.status is Status.ACTIVE and not one.is_over(now)]
    return tuple(sorted(holds, key=lambda one: not _is_same_place(one, request)))


def context_of(request: AccessRequest, recent: Page[AccessRequest], *, now: datetime) -> Context:
    """``recent``: the first page of the subject's requests, newest first."""
    rest = [other for other in recent.items if other.request_id != request.request_id]
    since = request.requested_at - _LOOK_BACK
    alike = [other for other in rest if is_same_thing(other, request) and since < other.requested_at < request.requested_at]
    holds = tuple(other for other in rest if other.status is Status.ACTIVE and not other.is_over(now) and _is_same_place(other, request))
    return Context(
        similar=_words(alike, is_lower_bound=_may_miss_some(recent, since)),
        holds=holds,
        overlaps=any(is_same_thing(other, request) for other in holds),
        unreadable=recent.unreadable,
    )


def _words(alike: Sequence[AccessRequest], *, is_lower_bound: bool) -> str:
    if not alike:
        return "none like it among the latest" if is_lower_bound else "first of its kind in 90 days"
    granted = _count(alike, _GRANTED)
    refused = _count(alike, {Status.DENIED})
    pending = _count(alike, {Status.PENDING})
    at_least = "at least " if is_lower_bound else ""
    outcome = _outcome(len(alike), granted=granted, refused=refused, pending=pending)
    return f"{at_least}{len(alike)} like it in 90 days, {outcome}"


def _outcome(total: int, *, granted: int, refused: int, pending: int) -> str:
    if total == granted:
        return "granted" if total == 1 else "all granted"
    if total == refused:
        return "denied" if total == 1 else "all denied"
    parts = [(granted, "granted"), (refused, "denied"), (pending, "waiting"), (total - granted - refused - pending, "not decided")]
    return ", ".join(f"{count} {word}" for count, word in parts if count)


def _count(requests: Iterable[AccessRequest], statuses: frozenset[Status] | set[Status]) -> int:
    return sum(request.status in statuses for request in requests)


def _is_same_place(one: AccessRequest, other: AccessRequest) -> bool:
    return (one.kind, one.scope) == (other.kind, other.scope)


def is_same_thing(one: AccessRequest, other: AccessRequest) -> bool:
    return thing_of(one) == thing_of(other)


def thing_of(request: AccessRequest) -> tuple[str, ...]:
    """What is asked for, whoever it is for."""
    return request.kind, request.scope, *kind_named(request.kind).target.holding(request), str(request.target.get("role", ""))


def _may_miss_some(recent: Page[AccessRequest], since: datetime) -> bool:
    """Whether there may be others from that time, which can't be read or are on the next page."""
    is_short = recent.next_cursor is not None and bool(recent.items) and recent.items[-1].requested_at > since
    return is_short or bool(recent.unreadable)
