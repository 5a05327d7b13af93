"""Deciding: approve, deny, lapse."""

from __future__ import annotations

from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import Any

from accessportal.access_requests import policy, store
from accessportal.access_requests.kind import Resolved, kind_named
from accessportal.access_requests.operations.shared import (
    ask_for_work,
    close_undecided,
    end_when_approved,
    load,
    load_for,
    purge_moment,
    require,
    until_written,
)
from accessportal.access_requests.policy import Standing
from accessportal.access_requests.queries.approvers import ApproverBook
from accessportal.access_requests.queries.lists import list_open
from accessportal.access_requests.queries.subjects import facts_of, presence_of
from accessportal.access_requests.queries.time_held import with_held
from accessportal.access_requests.states import AccessRequest, Status, Tally, Work
from accessportal.kernel.actors import Actor
from accessportal.kernel.clock import to_epoch
from accessportal.kernel.errors import Conflict, InvalidRequest, NotAllowed
from accessportal.kernel.texts import check_reason
from accessportal.store.transactions import Guard, Overtaken


def approve(*, request_id: str, reason: str = "", actor: Actor, now: datetime) -> AccessRequest:
    """Give ``actor``'s approval; the one that completes the quorum makes the request ACTIVE, with its end and its work. Approvers are those
    of the rule now, and one human counts once, whatever addresses they had. Conflict when it was decided, has lapsed, or the rules no
    longer allow it."""
    reason = check_reason(reason)

    def attempt() -> AccessRequest:
        book = ApproverBook(now=now)
        request, standing = load_for(request_id, actor, book)
        require(policy.may_approve(request, actor, standing, now), request)
        held_seconds = _require_still_allowed(request, book)
        place = _place_of(actor, request, standing, book)
        approved = replace(
            request,
            approvals=request.approvals | {actor.name},
            identities={**request.identities, **book.identities_of([actor.name, *place.in_place_of.values()])},
            in_place_of={**request.in_place_of, **place.in_place_of},
        )
        tally = book.tally(approved)
        if tally.missing:
            data = _told_of_approval(approved, tally, reason) | place.data
            return store.change(request, approved, "request.approval_given", data, guards=place.guards, actor=actor, now=now)
        return _activate(request, approved, tally, reason, held_seconds, place, actor, now)

    approved = until_written(attempt)
    if approved.work is not None:
        ask_for_work(approved, now)
    return approved


def deny(*, request_id: str, reason: str, actor: Actor, now: datetime) -> AccessRequest:
    """Refuse the request, with a reason that the requester will read. Conflict when it was decided meanwhile or has lapsed."""
    reason = check_reason(reason, missing="A reason is needed: the person who asked will read it.")

    def attempt() -> AccessRequest:
        book = ApproverBook(now=now)
        request, standing = load_for(request_id, actor, book)
        require(policy.may_decide(request, actor, standing, now), request)
        place = _place_of(actor, request, standing, book)
        denied = close_undecided(request, Status.DENIED, by=actor.name, reason=reason, now=now)
        denied = replace(denied, in_place_of={**request.in_place_of, **place.in_place_of})
        data = {"reason": reason, "status": Status.DENIED.value} | place.data
        return store.change(request, denied, "request.denied", data, guards=place.guards, actor=actor, now=now)

    return until_written(attempt)


def lapse(*, request_id: str, actor: Actor, now: datetime) -> AccessRequest:
    """Close a request that nobody decided before its deadline. Conflict when it is decided, or not yet past the deadline."""

    def attempt() -> AccessRequest:
        request = load(request_id)
        if not request.is_undecided_past_deadline(now):
            raise Conflict("The request is decided, or its deadline has not come.", code="not_due", present=request)
        lapsed = replace(request, status=Status.LAPSED, purge_at=purge_moment(now))
        data = {"status": Status.LAPSED.value, "deadline": to_epoch(request.expires_at)}
        return store.change(request, lapsed, "request.lapsed", data, actor=actor, now=now)

    return until_written(attempt)


@dataclass(frozen=True, slots=True)
class _Place:
    """In whose place the actor decides, if not by themselves, as the request keeps it and the event tells it; nobody must have taken that
    back when it is written."""

    in_place_of: dict[str, str]
    data: dict[str, str]
    guards: tuple[Guard, ...]


def _place_of(actor: Actor, request: AccessRequest, standing: Standing, book: ApproverBook) -> _Place:
    one = None if standing.is_approver() else book.in_place_of(request, actor)
    if one is None:
        return _Place({}, {}, ())
    return _Place({actor.name: one.approver}, {"in_place_of": one.approver}, (store.still_stands_in(one),))


def _told_of_approval(approved: AccessRequest, tally: Tally, reason: str) -> dict[str, Any]:
    return {"reason": reason, "approvals": sorted(approved.approvals), "quorum": tally.quorum, "fallback": tally.is_fallback}


def _activate(
    request: AccessRequest,
    approved: AccessRequest,
    tally: Tally,
    reason: str,
    held_seconds: int,
    place: _Place,
    actor: Actor,
    now: datetime,
) -> AccessRequest:
    expires_at = end_when_approved(request.kind, request.target, request.duration_seconds, at=now)
    active = replace(
        approved.to_do(Work.GRANT, due_at=now),
        status=Status.ACTIVE,
        expires_at=expires_at,
        decided_by=actor.name,
        decided_at=now,
        decision_reason=reason,
        held_since=now - timedelta(seconds=held_seconds) if held_seconds else request.held_since,
    )
    data = {**_told_of_approval(approved, tally, reason), **place.data, "status": Status.ACTIVE.value, "expires_at": to_epoch(expires_at)}
    guards = [*place.guards, *([store.not_ended_early(request.extends)] if request.extends else [])]
    return store.change(request, active, "request.approved", data, guards=guards, actor=actor, now=now)


def _require_still_allowed(request: AccessRequest, book: ApproverBook) -> int:
    """The rules and facts of now must still lead to the rule that the request stands on: a deny added since, a moved account or
    a disabled subject refuses. Returns for how many seconds the subject has held the same thing without a gap."""
    kind = kind_named(request.kind)
    try:
        subject = facts_of(request.subject_id, book=book)
    except (NotAllowed, InvalidRequest) as error:
        text = f"{request.subject_id} is disabled or gone from the directory; deny the request."
        raise Conflict(text, code="subject_disabled", present=request) from error
    _require_requester(request, book)
    _require_not_ended(request, book.now)
    try:
        resolved = kind.target.resolve(
            target=kind.target.asked(request),
            subject=subject,
            duration_seconds=request.duration_seconds,
            ticket_id=request.ticket_id,
            book=book.directory,
            now=book.now,
        )
    except InvalidRequest as error:
        raise Conflict(f"It is no longer possible: {error.message}", code="no_longer_possible", present=request) from error
    _require_same(request, resolved, book)
    resolved = with_held(resolved, list_open(subject_id=request.subject_id), now=book.now)
    decision = book.decide(resolved.question)
    if not decision.allowed:
        raise Conflict(f"The rules no longer allow it: {decision.reason}", code="no_longer_allowed", present=request)
    if decision.rule is None or decision.rule.name != request.rule_name:
        name = decision.rule.name if decision.rule else "another rule"
        text = f"The rules changed: {name} decides now, not {request.rule_name}. Deny it, so that it can be asked anew."
        raise Conflict(text, code="rule_changed", present=request)
    return resolved.question.held_seconds


def _require_requester(request: AccessRequest, book: ApproverBook) -> None:
    """A group is given nothing in the name of somebody who is disabled or gone by now; of a person's own the subject tells."""
    if request.requested_by == request.subject_id:
        return
    still = policy.is_still_there(request.requested_by, request, presence_of(request.requested_by, book=book))
    if not still.allowed:
        text = f"{still.reason} They asked for it: deny the request, and let somebody else of {request.subject_id} ask."
        raise Conflict(text, code="requester_gone", present=request)


def _require_not_ended(request: AccessRequest, now: datetime) -> None:
    """What somebody ended or took away does not come back by an extension that waited meanwhile."""
    held = store.get(request.extends) if request.extends else None
    if held is None:
        return
    decision = policy.may_be_continued(held)
    if decision.allowed and held.is_granted and not held.is_over(now):
        decision = kind_named(held.kind).grant.is_there(held, now=now)
    if not decision.allowed:
        # Whoever ended that just now has cancelled this with it, and there is nothing to deny.
        if load(request.request_id).version != request.version:
            raise Overtaken
        text = f"{decision.reason} Deny this request. Whoever needs the access again asks for it anew."
        raise Conflict(text, code="base_ended", present=request)


def _require_same(request: AccessRequest, resolved: Resolved, book: ApproverBook) -> None:
    """What the approver decides on is what will be granted: the very person, group, account and permission set that were asked for,
    not others that were given their names since."""
    kind = kind_named(request.kind)
    waiting = kind.grant.made_anew(request, book=book.directory, now=book.now)
    if waiting is not None:
        raise Conflict(f"{waiting.reason} Deny this request.", code="made_anew", present=request)
    if not kind.target.same_target(request.target, resolved.stored):
        text = "What was asked for was deleted and made anew under the same name since. Deny this request, so that it can be asked anew."
        raise Conflict(text, code="made_anew", present=request)
