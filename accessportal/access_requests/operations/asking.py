"""Asking: submit, extend, cancel."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from datetime import datetime, timedelta
from typing import Any

from accessportal.access_requests import policy, store
from accessportal.access_requests.config import current
from accessportal.access_requests.kind import Resolved, kind_named
from accessportal.access_requests.operations.limits import require_patience, require_room
from accessportal.access_requests.operations.shared import (
    ask_for_work,
    close_undecided,
    end_when_approved,
    load_for,
    require,
    until_written,
)
from accessportal.access_requests.queries.approvers import ApproverBook, demand_of
from accessportal.access_requests.queries.lists import list_open
from accessportal.access_requests.queries.subjects import subject_facts
from accessportal.access_requests.queries.time_held import with_held
from accessportal.access_requests.states import AccessRequest, Program, Status, Subject, Work
from accessportal.audit.states import Draft
from accessportal.kernel.actors import Actor
from accessportal.kernel.clock import from_epoch, to_epoch
from accessportal.kernel.errors import Conflict, InvalidRequest, NotAllowed
from accessportal.kernel.ids import request_id_for
from accessportal.kernel.pages import Unreadable
from accessportal.rules.matching import is_served_by_membership
from accessportal.rules.states import Rule, RuleDecision
from accessportal.store.transactions import ConditionFailed, Overtaken

# What somebody types beside the target, and how it is told that it differs.
_TYPED = {
    "subject_id": "another subject",
    "duration_seconds": "another length",
    "reason": "another reason",
    "ticket_id": "another ticket",
    "extends": "another request to extend",
}


def submit(
    *,
    kind: str,
    subject_id: str | None,
    target: Mapping[str, str],
    duration_seconds: int | None,
    reason: str,
    ticket_id: str,
    submission_id: str,
    extends: AccessRequest | None = None,
    program: Program | None = None,
    actor: Actor,
    now: datetime,
) -> AccessRequest:
    """Ask for access for ``subject_id`` (``None``: the actor; else a group that they are in), written with its rule, its facts and its
    first event: ACTIVE, or PENDING until the deadline for deciding. The same ``submission_id`` of a person returns the first request, or
    raises Conflict with it where it asked for something else. ``extends``: what :func:`extend` has judged, and counted. ``program``: who
    asks in the actor's name, for what the actor may ask for; the event is its, and its ids are no one else's."""
    asker = actor if program is None else program.actor
    if extends is None:
        require_patience(actor=asker, now=now)
    policy.check_input(duration_seconds=duration_seconds, reason=reason, ticket_id=ticket_id, submission_id=submission_id)
    request_id = _id_of(submission_id, actor, program)
    book = ApproverBook(now=now)
    subject = subject_facts(subject_id, actor, book=book)
    unreadable: list[Unreadable] = []
    open_now = list_open(subject_id=subject.subject_id, past=unreadable.append)
    require_room(subject_id=subject.subject_id, open_now=len(open_now) + len(unreadable), request_id=request_id)
    resolved = kind_named(kind).target.resolve(
        target=target,
        subject=subject,
        duration_seconds=duration_seconds,
        ticket_id=ticket_id.strip(),
        book=book.directory,
        now=now,
    )
    if extends is not None:
        _require_same(extends, resolved, book)
    for one in unreadable:
        raise one.error()
    # What was sent before must be decided as it was then: it does not count as held by itself.
    resolved = with_held(resolved, open_now, besides=request_id, now=now)
    rule = _allowing_rule(book.decide(resolved.question))
    if duration_seconds is None:
        resolved = _with_usual_length(resolved, rule)
        rule = _allowing_rule(book.decide(resolved.question))
    try:
        kind_named(kind).grant.require_free(resolved=resolved, subject=subject, rule=rule, open_now=open_now, book=book.directory, now=now)
    except NotAllowed:
        # What was sent before is answered as it was then: it may be itself what fills the limit.
        if store.get(request_id) is None:
            raise
    request = _new_request(
        kind=kind,
        subject=subject,
        resolved=resolved,
        rule=rule,
        reason=reason.strip(),
        submission_id=submission_id,
        extends=extends.request_id if extends else "",
        program=program,
        actor=actor,
        now=now,
    )
    action = "request.submitted" if rule.approval.required else "request.auto_approved"
    guards = [store.still_wanted(extends.request_id)] if extends else []
    try:
        written = store.insert(request, draft=draft_of(action, request), guards=guards, actor=asker, now=now)
    except ConditionFailed as error:
        raise Conflict(policy.NOT_EXTENDED, code="not_active", present=extends) from error
    except Overtaken:
        # The usual length is the rule's of the moment; nobody typed it.
        typed = _TYPED if duration_seconds is not None else {name: words for name, words in _TYPED.items() if name != "duration_seconds"}
        return _first_submission(request, typed)
    if written.work is not None:
        ask_for_work(written, now)
    return written


def extend(
    *,
    request_id: str,
    duration_seconds: int,
    reason: str = "",
    ticket_id: str = "",
    submission_id: str,
    actor: Actor,
    now: datetime,
) -> AccessRequest:
    """Ask for the same thing again while it is held: a further request with its own decision, linked by ``extends``, that lasts
    ``duration_seconds`` from its own approval. Reason and ticket are those of the first one unless given. InvalidRequest when it would end
    no later than what is held."""
    policy.check_duration(duration_seconds)
    require_patience(actor=actor, now=now)
    first, standing = load_for(request_id, actor, ApproverBook(now=now))
    require(policy.may_extend(first, standing, now), first)
    if policy.ends_no_later(first, duration_seconds, now):
        raise InvalidRequest(policy.EXTENSION_TOO_SHORT, code="extension_too_short", field="duration")
    return submit(
        kind=first.kind,
        subject_id=first.subject_id if first.subject_id.startswith("/") else None,
        target=kind_named(first.kind).target.asked(first),
        duration_seconds=duration_seconds,
        reason=reason or first.reason,
        ticket_id=ticket_id or first.ticket_id,
        submission_id=submission_id,
        extends=first,
        actor=actor,
        now=now,
    )


def cancel(*, request_id: str, actor: Actor, now: datetime) -> AccessRequest:
    """Withdraw an undecided request. Conflict when it was decided meanwhile."""

    def attempt() -> AccessRequest:
        request, standing = load_for(request_id, actor, ApproverBook(now=now))
        require(policy.may_cancel(request, standing), request)
        cancelled = close_undecided(request, Status.CANCELLED, by=actor.name, reason="", now=now)
        return store.change(request, cancelled, "request.cancelled", {"status": Status.CANCELLED.value}, actor=actor, now=now)

    return until_written(attempt)


def _require_same(held: AccessRequest, resolved: Resolved, book: ApproverBook) -> None:
    """An extension is of the very thing that is held, not of another that has its names now."""
    kind = kind_named(held.kind)
    if kind.grant.made_anew(held, book=book.directory, now=book.now) or not kind.target.gives(held, resolved.stored):
        text = "What you hold was deleted, and something else has its name now, so it can't be extended. Ask for the new one."
        raise Conflict(text, code="made_anew", present=held)


def _allowing_rule(decision: RuleDecision) -> Rule:
    if decision.allowed and decision.rule is not None:
        return decision.rule
    # A ticket that is missing or wrong: its reason names what to give already.
    more = [one for one in decision.remedies if one.removeprefix("Give ").removesuffix(".") not in decision.reason]
    text = " ".join([decision.reason, *more])
    if decision.field:
        raise InvalidRequest(text, code=decision.code, field=decision.field)
    raise NotAllowed(text, code=decision.code)


def _with_usual_length(resolved: Resolved, rule: Rule) -> Resolved:
    usual = min(rule.default_duration_seconds, rule.longest_after(resolved.question.held_seconds))
    if resolved.longest_seconds is not None:
        usual = min(usual, resolved.longest_seconds)
    return replace(resolved, question=replace(resolved.question, duration_seconds=usual))


def _new_request(
    *,
    kind: str,
    subject: Subject,
    resolved: Resolved,
    rule: Rule,
    reason: str,
    submission_id: str,
    extends: str,
    program: Program | None,
    actor: Actor,
    now: datetime,
) -> AccessRequest:
    waits = rule.approval.required
    duration_seconds, held_seconds = resolved.question.duration_seconds, resolved.question.held_seconds
    assert duration_seconds is not None
    asked_at = from_epoch(to_epoch(now))
    decide_by = asked_at + timedelta(seconds=current().decide_within_seconds)
    evidence: dict[str, Any] = {
        **resolved.evidence,
        "subject_name": subject.name,
        "requested_by_name": subject.requester_name,
        "subject_groups": sorted(subject.groups),
        "rule_version": rule.version,
        "max_duration_seconds": rule.max_duration_seconds,
        **rule.terms.kept(),
    }
    if is_served_by_membership(rule, subject.subject_id):
        evidence["served_by"] = {"groups": list(rule.subjects.groups), "groups_only": list(rule.subjects.groups_only)}
    if program is not None:
        evidence |= {"asked_through": program.actor.name, "program_name": program.name}
    return AccessRequest(
        request_id=_id_of(submission_id, actor, program),
        kind=kind,
        subject_id=subject.subject_id,
        requested_by=actor.name,
        target=resolved.stored,
        account_id=resolved.account_id,
        permission_set=resolved.permission_set,
        reason=reason,
        ticket_id=resolved.question.ticket_id or "",
        duration_seconds=duration_seconds,
        submission_id=submission_id,
        rule_name=rule.name,
        rule_hash=rule.hash,
        approval=demand_of(rule, group_id=kind_named(kind).target.membership(resolved.stored)[0]),
        evidence=evidence,
        scope=resolved.scope,
        status=Status.PENDING if waits else Status.ACTIVE,
        requested_at=asked_at,
        expires_at=decide_by if waits else end_when_approved(kind, resolved.stored, duration_seconds, at=asked_at),
        extends=extends,
        decided_by="" if waits else f"rule:{rule.name}",
        decided_at=None if waits else asked_at,
        work=None if waits else Work.GRANT,
        work_due_at=None if waits else now,
        identities={actor.name: subject.requester_identity} if subject.requester_identity else {},
        held_since=None if waits or not held_seconds else asked_at - timedelta(seconds=held_seconds),
    )


def _id_of(submission_id: str, actor: Actor, program: Program | None) -> str:
    """Programs have ids of their own, that no form of the person's can take."""
    asker = actor.name if program is None else f"{program.actor.name} {actor.name}"
    return request_id_for(requested_by=asker, submission_id=submission_id)


def draft_of(action: str, request: AccessRequest) -> Draft:
    """Its first event."""
    told: dict[str, Any] = {
        "kind": request.kind,
        "target": dict(request.target),
        "duration_seconds": request.duration_seconds,
        "reason": request.reason,
        "ticket_id": request.ticket_id,
        "rule_name": request.rule_name,
        "rule_hash": request.rule_hash,
        "expires_at": to_epoch(request.expires_at),
        "extends": request.extends,
    }
    if request.asked_through:
        told["requested_by"] = request.requested_by
    return Draft(action, request.subject_id, told, scope=request.scope)


def _first_submission(request: AccessRequest, typed: Mapping[str, str]) -> AccessRequest:
    first = store.get(request.request_id)
    if first is None:
        text = "This form was sent before, so long ago that its request is forgotten. Open the form anew and send it again."
        raise Conflict(text, code="submission_reused")
    others = [words for name, words in typed.items() if getattr(first, name) != getattr(request, name)]
    if first.kind != request.kind or not kind_named(request.kind).target.same_target(first.target, request.target):
        others = ["another target", *others]
    if not others:
        return first
    text = f"This form was sent before, with {' and '.join(others)}. That request stands as it was sent, and nothing was done now."
    raise Conflict(text, code="submission_reused", present=first)
