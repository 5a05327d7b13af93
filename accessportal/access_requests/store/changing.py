"""Reading, making and changing one request. Every change is one transaction with its audit event."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import datetime

from pynamodb.expressions.update import Action

from accessportal.access_requests.models import RequestItem
from accessportal.access_requests.states import ALLOWED_MOVES, AccessRequest, Receipt, Status, Work
from accessportal.access_requests.store.converting import approval_map, precise, receipt_map, record, ticket_key
from accessportal.audit.operations import prepare_event
from accessportal.audit.states import Draft
from accessportal.kernel.actors import Actor
from accessportal.kernel.clock import to_epoch
from accessportal.kernel.pages import Unreadable
from accessportal.store.reading import read_item, read_items
from accessportal.store.transactions import Change, ConditionFailed, Guard, Insert, transact, update_one


class Overtaken(Exception):
    """Another writer changed the request since it was read. Read it again and decide again."""


def get(request_id: str) -> AccessRequest | None:
    """Strongly read."""
    return read_item(RequestItem, record, request_id)


def get_many(request_ids: Iterable[str], *, past: Callable[[Unreadable], object] | None = None) -> dict[str, AccessRequest]:
    """Those that exist, by id, strongly read; ``past`` as in :func:`every`."""
    return read_items(RequestItem, record, request_ids, past=past)


def insert(request: AccessRequest, *, draft: Draft, actor: Actor, now: datetime) -> AccessRequest:
    """A new request and its first event.

    :raises Overtaken: when the id exists already.
    """
    event = prepare_event(draft, entity=request.entity, sequence=1, prev_hash="", actor=actor, now=now)
    item = RequestItem(
        request.request_id,
        subject_id=request.subject_id,
        rule_name=request.rule_name,
        ticket_id=request.ticket_id,
        account_id=request.account_id or None,
        permission_set=request.permission_set or None,
        status=request.status.value,
        requested_at=to_epoch(request.requested_at),
        expires_at=to_epoch(request.expires_at),
        approval_required=request.approval.required,
        kind=request.kind,
        target=dict(request.target),
        requested_by=request.requested_by,
        reason=request.reason,
        duration_seconds=request.duration_seconds,
        submission_id=request.submission_id,
        extends=request.extends or None,
        decided_by=request.decided_by or None,
        decided_at=None if request.decided_at is None else to_epoch(request.decided_at),
        approval=approval_map(request.approval),
        work=None if request.work is None else request.work.value,
        work_due_at=None if request.work_due_at is None else precise(request.work_due_at),
        held_since=None if request.held_since is None else to_epoch(request.held_since),
        rule_hash=request.rule_hash,
        evidence=dict(request.evidence),
        identities=dict(request.identities) or None,
        scope=request.scope,
        open_subject=request.subject_id,
        ticket_key=ticket_key(request.ticket_id) or None,
        version=1,
        audit_head=event.head,
    )
    try:
        transact([Insert(item), event.step])
    except ConditionFailed as error:
        raise Overtaken from error
    return record(item)


def change(request: AccessRequest, actions: Sequence[Action], *, draft: Draft, actor: Actor, now: datetime) -> AccessRequest:
    """Write ``actions`` on the request as it was read, with the event; the version tells whether it still is.

    :raises Overtaken: when somebody else changed it first.
    """
    version = request.version + 1
    event = prepare_event(draft, entity=request.entity, sequence=version, prev_hash=request.audit_head, actor=actor, now=now)
    step = Change(
        RequestItem,
        request.request_id,
        [*actions, RequestItem.version.set(version), RequestItem.audit_head.set(event.head)],
        (RequestItem.version == request.version) & (RequestItem.status == request.status.value),
    )
    try:
        transact([step, event.step])
    except ConditionFailed as error:
        raise Overtaken from error
    fresh = get(request.request_id)
    assert fresh is not None, "requests are deleted by TTL alone, long after their end"
    return fresh


# What the moves write. Each is one list of update actions.


def set_status(request: AccessRequest, to: Status) -> list[Action]:
    """Only along the transition table."""
    if to not in ALLOWED_MOVES[request.status]:
        raise ValueError(f"a request does not go from {request.status} to {to}")
    actions: list[Action] = [RequestItem.status.set(to.value)]
    if to.is_terminal:
        actions.append(RequestItem.open_subject.remove())
    return actions


def set_purge(purge_at: datetime) -> list[Action]:
    return [RequestItem.purge_at.set(to_epoch(purge_at))]


def set_decision(*, decided_by: str, decided_at: datetime, reason: str) -> list[Action]:
    return [
        RequestItem.decided_by.set(decided_by),
        RequestItem.decided_at.set(to_epoch(decided_at)),
        RequestItem.decision_reason.set(reason),
    ]


def add_approval(approver: str, *, identities: Mapping[str, str]) -> list[Action]:
    """``identities`` as they are with this approval."""
    actions: list[Action] = [RequestItem.approvals.add({approver})]
    return [*actions, RequestItem.identities.set(dict(identities))] if identities else actions


def set_end(expires_at: datetime) -> list[Action]:
    return [RequestItem.expires_at.set(to_epoch(expires_at))]


def set_held_since(at: datetime) -> list[Action]:
    return [RequestItem.held_since.set(to_epoch(at))]


def set_ended_by(actor: str) -> list[Action]:
    return [RequestItem.ended_by.set(actor)]


def set_work(work: Work, due_at: datetime) -> list[Action]:
    return [
        RequestItem.work.set(work.value),
        RequestItem.work_due_at.set(precise(due_at)),
        RequestItem.work_attempts.set(0),
        RequestItem.work_error.remove(),
    ]


def set_work_due(due_at: datetime, *, attempts: int, error: str) -> list[Action]:
    return [
        RequestItem.work_due_at.set(precise(due_at)),
        RequestItem.work_attempts.set(attempts),
        RequestItem.work_error.set(error),
    ]


def clear_work() -> list[Action]:
    return [
        RequestItem.work.remove(),
        RequestItem.work_due_at.remove(),
        RequestItem.work_attempts.remove(),
        RequestItem.work_error.remove(),
    ]


def add_receipt(receipt: Receipt) -> list[Action]:
    return [RequestItem.receipts.set((RequestItem.receipts | []).append([receipt_map(receipt)]))]


def set_granted(at: datetime) -> list[Action]:
    return [RequestItem.granted_at.set(to_epoch(at))]


def set_revoked(at: datetime) -> list[Action]:
    return [RequestItem.revoked_at.set(to_epoch(at))]


def claim_work(request: AccessRequest, *, until: datetime) -> bool:
    """Whether the caller alone may carry the work out until ``until``: pushes the due time that was read, if it is still so.

    Bookkeeping: no version, no event.
    """
    assert request.work is not None
    assert request.work_due_at is not None
    condition = (RequestItem.work == request.work.value) & (RequestItem.work_due_at == precise(request.work_due_at))
    try:
        update_one(Change(RequestItem, request.request_id, [RequestItem.work_due_at.set(precise(until))], condition))
    except ConditionFailed:
        return False
    return True


def postpone_work(request: AccessRequest, *, until: datetime, note: str) -> None:
    """Look again at ``until``; ``note`` says what is waited for. Bookkeeping of ordinary waiting: no version, no event.

    :raises Overtaken: when the request changed meanwhile.
    """
    assert request.work is not None
    condition = (RequestItem.work == request.work.value) & (RequestItem.version == request.version)
    actions = [RequestItem.work_due_at.set(precise(until)), RequestItem.work_error.set(note)]
    try:
        update_one(Change(RequestItem, request.request_id, actions, condition))
    except ConditionFailed as error:
        raise Overtaken from error


def still_to_be_granted(request_id: str) -> Guard:
    """The guard under which a claim may be taken for this request."""
    return Guard(RequestItem, request_id, (RequestItem.status == Status.ACTIVE.value) & (RequestItem.work == Work.GRANT.value))
