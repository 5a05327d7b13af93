"""Ending: early, or because the time is up."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress
from dataclasses import replace
from datetime import datetime

from accessportal.access_requests import policy, store
from accessportal.access_requests.operations.shared import ask_for_work, close_undecided, load, load_for, require, until_written
from accessportal.access_requests.queries.approvers import ApproverBook
from accessportal.access_requests.queries.details import ended_together
from accessportal.access_requests.states import AccessRequest, Status, Work
from accessportal.kernel.actors import Actor
from accessportal.kernel.clock import to_epoch
from accessportal.kernel.decisions import Decision
from accessportal.kernel.errors import Conflict, NotAllowed, NotFound
from accessportal.kernel.texts import check_reason


def end(*, request_id: str, reason: str = "", actor: Actor, now: datetime) -> AccessRequest:
    """End active access now: taking it back becomes due, and it stays ACTIVE until proved gone. What extends it, or is extended by it,
    ends with it, as far as the actor may; the one that was asked for ends last, so that dying on the way leaves it to be ended again."""
    reason = check_reason(reason)
    asked = _load_to_end(request_id, actor, now)
    together = ended_together(request=asked)
    for other in together:
        with suppress(Conflict, NotAllowed, NotFound):
            _end_one(other.request_id, iter(()), reason, actor, now)
    held_until = max((other.expires_at for other in together if other.is_granted), default=None)
    return _end_one(request_id, iter([asked]), reason, actor, now, held_until=held_until)


def _load_to_end(request_id: str, actor: Actor, now: datetime) -> AccessRequest:
    request, standing = load_for(request_id, actor, ApproverBook(now=now))
    require(policy.may_end(request, actor, standing), request)
    return request


def _end_one(
    request_id: str, loaded: Iterator[AccessRequest], reason: str, actor: Actor, now: datetime, held_until: datetime | None = None
) -> AccessRequest:
    """``loaded`` is what the first attempt need not load; whoever is overtaken loads it anew. ``held_until``: of those that end with it."""

    def attempt() -> AccessRequest:
        request = next(loaded, None) or _load_to_end(request_id, actor, now)
        return end_loaded(request, reason=reason, held_until=held_until, actor=actor, now=now)

    ended = until_written(attempt)
    ask_for_work(ended, now)
    return ended


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
    request: AccessRequest, *, reason: str, code: str = "", held_until: datetime | None = None, actor: Actor, now: datetime
) -> AccessRequest:
    """End active access as it was read; ``code`` is kept beside what the portal ends by itself. Overtaken when it was changed since."""
    ends_at, was_to_end_at = min(now, request.expires_at), max(request.expires_at, held_until or request.expires_at)
    ended = replace(request.to_do(Work.REVOKE, due_at=now), expires_at=ends_at, was_to_end_at=was_to_end_at)
    ended = replace(ended, ended_by=actor.name, end_code=code)
    data = {"reason": reason, "expires_at": to_epoch(ends_at)}
    return store.change(request, ended, "request.end_asked", data, actor=actor, now=now)


def _cancelled(request: AccessRequest, reason: str, actor: Actor, now: datetime) -> AccessRequest:
    cancelled = close_undecided(request, Status.CANCELLED, by=actor.name, reason=reason, now=now)
    data = {"status": Status.CANCELLED.value, "reason": reason}
    return store.change(request, cancelled, "request.cancelled", data, actor=actor, now=now)


def expire(*, request_id: str, actor: Actor, now: datetime) -> AccessRequest:
    """Make taking back due for access whose time is up. Conflict when it is not, or when it is being taken back already."""

    def attempt() -> AccessRequest:
        request = load(request_id)
        if request.status is not Status.ACTIVE or request.work is Work.REVOKE or not request.is_over(now):
            raise Conflict("Its time is not up, or it is being taken back already.", code="not_due", present=request)
        data = {"expires_at": to_epoch(request.expires_at)}
        return store.change(request, request.to_do(Work.REVOKE, due_at=now), "request.expired", data, actor=actor, now=now)

    return until_written(attempt)
