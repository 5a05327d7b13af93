"""What the verbs share: loading with the right to see, retrying a lost race, and asking for the work to start."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from datetime import datetime, timedelta
from typing import Any

from accessportal.access_requests import policy, store
from accessportal.access_requests.config import current
from accessportal.access_requests.kind import kind_named
from accessportal.access_requests.policy import Standing
from accessportal.access_requests.queries.approvers import ApproverBook
from accessportal.access_requests.states import AccessRequest, Status
from accessportal.kernel.actors import Actor
from accessportal.kernel.decisions import Decision
from accessportal.kernel.errors import Conflict, NoAnswer, NotAllowed, NotFound
from accessportal.kernel.ports import after_commit
from accessportal.store import transactions

# Refusals that are about how the request stands, not about who asks: 409 with the present state instead of 403.
_STATE_CODES = frozenset(
    {
        "already_decided",
        "lapsed",
        "not_active",
        "already_ending",
        "already_approved",
        "no_work",
        "not_given_back",
        "undo_over",
        "work_under_way",
        "comments_closed",
        "comments_full",
    }
)


def load(request_id: str) -> AccessRequest:
    """:raises NotFound: when it does not exist."""
    request = store.get(request_id)
    if request is None:
        raise NotFound("There is no such request.", code="request_not_found")
    return request


def load_for(request_id: str, actor: Actor, book: ApproverBook) -> tuple[AccessRequest, Standing]:
    """Return the request and what the actor is to it. NotFound when it does not exist or is invisible to the actor. ``book`` is of this
    attempt alone: what a page has seen decides nothing."""
    request = book.with_identities(load(request_id))
    standing = book.standing(request, actor)
    decision = policy.may_see(request, actor, standing)
    if not decision.allowed:
        raise NotFound(decision.reason, code=decision.code)
    return request, standing


def require(decision: Decision, request: AccessRequest) -> None:
    """:raises Conflict: with the request as it stands, when its state refuses. :raises NotAllowed: when the right does."""
    if decision.allowed:
        return
    if decision.code in _STATE_CODES:
        raise Conflict(decision.reason, code=decision.code, present=request)
    raise NotAllowed(decision.reason, code=decision.code)


def until_written(attempt: Callable[[], AccessRequest]) -> AccessRequest:
    """The result of ``attempt``, which reads, decides and writes; again from the start whenever it was overtaken."""
    contended = NoAnswer("Too many others are changing this request right now. Try again.", code="request_contended")
    return transactions.until_written(attempt, contended=contended)


def close_undecided(request: AccessRequest, status: Status, *, by: str, reason: str, now: datetime) -> AccessRequest:
    """The pending request as it is when it was decided that nothing is given."""
    decided = replace(request, decided_by=by, decided_at=now, decision_reason=reason)
    return replace(decided, status=status, purge_at=purge_moment(now))


def end_when_approved(kind: str, stored: Mapping[str, Any], duration_seconds: int, *, at: datetime) -> datetime:
    """The end of what is approved ``at``; where it may have to wait in a line, the end of its place there, if that is later."""
    return at + timedelta(seconds=max(duration_seconds, kind_named(kind).grant.longest_wait_seconds(stored)))


def ask_for_work(request: AccessRequest, now: datetime) -> None:
    """Have the work of a request that was just written start at once, and its end watched."""
    after_commit("carry_out", request_id=request.request_id)
    watch_end(request, now)


def watch_end(request: AccessRequest, now: datetime) -> None:
    """Have the end of a request that was just written watched if the next tick may come too late."""
    if request.status is Status.ACTIVE and timedelta(0) < request.expires_at - now < timedelta(seconds=policy.WATCH_WITHIN_SECONDS):
        after_commit("watch_ends", until=request.expires_at.isoformat())


def purge_moment(now: datetime) -> datetime:
    """When DynamoDB may forget a request that ended ``now``; its history stays in the audit log."""
    return now + timedelta(days=current().purge_after_days)
