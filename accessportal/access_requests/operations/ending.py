"""Ending: early, or because the time is up; and what waited to go on with it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import replace
from datetime import datetime
from functools import partial

from accessportal.access_requests import policy, store
from accessportal.access_requests.operations.shared import ask_for_work, close_undecided, load, load_for, require, until_written
from accessportal.access_requests.queries.approvers import ApproverBook
from accessportal.access_requests.queries.details import closed_with, what_ends_beside
from accessportal.access_requests.states import AccessRequest, Status, Work
from accessportal.kernel.actors import Actor
from accessportal.kernel.clock import to_epoch
from accessportal.kernel.decisions import Decision
from accessportal.kernel.errors import Conflict, NotAllowed, NotFound
from accessportal.kernel.texts import check_reason
from accessportal.store.transactions import Overtaken

# DynamoDB takes a hundred items in a transaction; some are of what ends.
_MOST_STEPS = 90


def end(*, request_id: str, reason: str = "", actor: Actor, now: datetime) -> AccessRequest:
    """End active access now: taking it back becomes due, and it stays ACTIVE until proved gone. What extends it, or is extended by it,
    ends with it, as far as the actor may; the one that was asked for ends last, so that dying on the way leaves it to be ended again."""
    reason = check_reason(reason)
    together: dict[str, AccessRequest] = {}

    def attempt() -> AccessRequest:
        asked = _load_to_end(request_id, actor, now)
        # Anew in each attempt: an extension that was approved meanwhile ends, too.
        ends = what_ends_beside(request=asked)
        for other in ends.together:
            together.setdefault(other.request_id, other)
            with suppress(Conflict, NotAllowed, NotFound):
                _end_one(other.request_id, reason, actor, now)
        held_until = max((other.expires_at for other in together.values() if other.is_granted), default=None)
        waiting = None if ends.together else ends.waiting
        return end_loaded(asked, reason=reason, held_until=held_until, waiting=waiting, actor=actor, now=now)

    ended = until_written(attempt)
    ask_for_work(ended, now)
    return ended


def _load_to_end(request_id: str, actor: Actor, now: datetime) -> AccessRequest:
    request, standing = load_for(request_id, actor, ApproverBook(now=now))
    require(policy.may_end(request, actor, standing), request)
    return request


def _end_one(request_id: str, reason: str, actor: Actor, now: datetime) -> None:
    ended = until_written(lambda: end_loaded(_load_to_end(request_id, actor, now), reason=reason, actor=actor, now=now))
    ask_for_work(ended, now)


def end_without_subject(*, request_id: str, why: Decision, actor: Actor, now: datetime) -> AccessRequest:
    """End active access whose subject is not there any more, or cancel the request for it; ``why`` is the refusal that says so. Also for
    what somebody took away. Conflict when it is over, or being taken back already."""

    def attempt() -> AccessRequest:
        request = load(request_id)
        if request.status is Status.PENDING:
            return _cancelled(request, why.reason, actor, now)
        if request.status is not Status.ACTIVE or request.work is Work.REVOKE:
            raise Conflict("It is over, or being taken back already.", code="not_due", present=request)
        return end_loaded(request, reason=why.reason, code=why.code, actor=actor, now=now)

    return until_written(attempt)


def end_loaded(
    request: AccessRequest,
    *,
    reason: str,
    code: str = "",
    held_until: datetime | None = None,
    waiting: Sequence[AccessRequest] | None = None,
    actor: Actor,
    now: datetime,
) -> AccessRequest:
    """End active access as it was read, and cancel what is ``waiting`` to go on with it (``None``: not read yet); ``code`` is kept beside
    what the portal ends by itself. Overtaken when one of them was changed since."""
    ends_at, was_to_end_at = min(now, request.expires_at), max(request.expires_at, held_until or request.expires_at)
    ended = replace(request.to_do(Work.REVOKE, due_at=now), expires_at=ends_at, was_to_end_at=was_to_end_at)
    ended = replace(ended, ended_by=actor.name, end_code=code)
    move = store.Move(request, ended, "request.end_asked", {"reason": reason, "expires_at": to_epoch(ends_at)})
    return _end_with(closed_with(request=ended) if waiting is None else waiting, move, actor, now)


def _end_with(waiting: Sequence[AccessRequest], move: store.Move, actor: Actor, now: datetime) -> AccessRequest:
    """End it together with what waits to go on with it, as far as one transaction takes; :func:`close_waiting` does the rest."""
    reason = _cut_off(move.after, str(move.data.get("reason", "")))
    change = partial(store.change, move.before, move.after, move.action, move.data, actor=actor, now=now)
    cancelled = list(_that_fit(_cancelling(one, reason, actor, now) for one in waiting))
    try:
        return change(besides=cancelled)
    except Overtaken:
        if not cancelled or closed_with(request=move.after) != list(waiting):
            raise
    # Nobody changed them, so the events of one of them are not as it says: that keeps no access.
    return change()


def close_waiting(request: AccessRequest, *, actor: Actor, now: datetime) -> None:
    """Cancel what still waits to go on with ``request``, which is over."""
    for one in closed_with(request=request):
        with suppress(Overtaken):
            _cancelled(one, _cut_off(request, ""), actor, now)


def _that_fit(moves: Iterable[store.Move]) -> Iterator[store.Move]:
    room = _MOST_STEPS
    for move in moves:
        if move.steps_needed <= room:
            room -= move.steps_needed
            yield move


def _cut_off(ended: AccessRequest, reason: str) -> str:
    if ended.ended_by:
        return f"What this would extend was ended early. {reason}".rstrip()
    return "What this would extend was over before somebody decided. Ask for a new one."


def _cancelled(request: AccessRequest, reason: str, actor: Actor, now: datetime) -> AccessRequest:
    move = _cancelling(request, reason, actor, now)
    return store.change(move.before, move.after, move.action, move.data, actor=actor, now=now)


def _cancelling(request: AccessRequest, reason: str, actor: Actor, now: datetime) -> store.Move:
    cancelled = close_undecided(request, Status.CANCELLED, by=actor.name, reason=reason, now=now)
    return store.Move(request, cancelled, "request.cancelled", {"status": Status.CANCELLED.value, "reason": reason})


def expire(*, request_id: str, actor: Actor, now: datetime) -> AccessRequest:
    """Make taking back due for access whose time is up. Conflict when it is not, or when it is being taken back already."""

    def attempt() -> AccessRequest:
        request = load(request_id)
        if request.status is not Status.ACTIVE or request.work is Work.REVOKE or not request.is_over(now):
            raise Conflict("Its time is not up, or it is being taken back already.", code="not_due", present=request)
        data = {"expires_at": to_epoch(request.expires_at)}
        move = store.Move(request, request.to_do(Work.REVOKE, due_at=now), "request.expired", data)
        return _end_with(closed_with(request=move.after), move, actor, now)

    return until_written(attempt)
