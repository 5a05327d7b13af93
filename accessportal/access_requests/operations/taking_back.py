"""Undoing that something was given back: a new request for the time that was left, which revives the very thing."""

from __future__ import annotations

from dataclasses import replace
from datetime import datetime

from accessportal.access_requests import policy, store
from accessportal.access_requests.kind import kind_named
from accessportal.access_requests.operations.asking import draft_of
from accessportal.access_requests.operations.shared import ask_for_work, load_for, require
from accessportal.access_requests.queries.approvers import ApproverBook
from accessportal.access_requests.queries.details import may_take_back
from accessportal.access_requests.queries.subjects import presence_of
from accessportal.access_requests.states import AccessRequest, Status, Work
from accessportal.kernel.actors import Actor
from accessportal.kernel.clock import whole_second
from accessportal.kernel.ids import request_id_for
from accessportal.store.transactions import Overtaken


def take_back(*, request_id: str, actor: Actor, now: datetime) -> AccessRequest:
    """Give the holder again what they gave back a moment ago, until it was to end: a new ACTIVE request of the same rule, approved by the
    undo itself. Repeated, it answers with the first. Conflict when the time for it is over, or cleaning has begun."""
    submission_id = f"take-back-{request_id}"
    first = store.get(request_id_for(requested_by=actor.name, submission_id=submission_id))
    if first is not None:
        return first
    book = ApproverBook(now=now)
    given_back, standing = load_for(request_id, actor, book)
    require(may_take_back(given_back, actor, standing, now), given_back)
    require(policy.may_stay(given_back, presence_of(given_back.subject_id, book=book)), given_back)
    again = _again(given_back, submission_id, actor, now)
    try:
        written = store.insert(again, draft=draft_of("request.taken_back", again), actor=actor, now=now)
    except Overtaken:
        # Sent twice at once.
        present = store.get(again.request_id)
        assert present is not None, "its insert was refused because it exists"
        return present
    ask_for_work(written, now)
    return written


def _again(given_back: AccessRequest, submission_id: str, actor: Actor, now: datetime) -> AccessRequest:
    asked_at, until = whole_second(now), given_back.was_to_end_at
    assert until is not None, "it was given back before its end"
    return AccessRequest(
        request_id=request_id_for(requested_by=actor.name, submission_id=submission_id),
        kind=given_back.kind,
        subject_id=given_back.subject_id,
        requested_by=actor.name,
        target=kind_named(given_back.kind).target.taken_back(given_back.target),
        account_id=given_back.account_id,
        permission_set=given_back.permission_set,
        reason=given_back.reason,
        ticket_id=given_back.ticket_id,
        duration_seconds=int((until - asked_at).total_seconds()),
        submission_id=submission_id,
        rule_name=given_back.rule_name,
        rule_hash=given_back.rule_hash,
        approval=replace(given_back.approval, required=False),
        evidence={**given_back.evidence, "takes_back": given_back.request_id},
        scope=given_back.scope,
        status=Status.ACTIVE,
        requested_at=asked_at,
        expires_at=until,
        extends=given_back.request_id,
        decided_by="undo",
        decided_at=asked_at,
        work=Work.GRANT,
        work_due_at=now,
        identities=given_back.identities,
        held_since=given_back.holds_since,
    )
