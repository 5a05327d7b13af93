"""The only user of the ActiveRequests item class. Every change is one transaction with its audit event."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any

from pynamodb.expressions.condition import Condition
from pynamodb.expressions.update import Action

from accessportal.access_requests.models import RequestItem
from accessportal.access_requests.states import ALLOWED_MOVES, TARGET_PARTS, AccessRequest, ApprovalDemand, Receipt, Status, Work
from accessportal.audit.operations import prepare_event
from accessportal.audit.states import Draft
from accessportal.kernel.actors import Actor
from accessportal.kernel.clock import from_epoch, to_epoch
from accessportal.kernel.keys import fold_key
from accessportal.kernel.pages import Page
from accessportal.store.reading import query_page, read_item
from accessportal.store.transactions import Change, ConditionFailed, Guard, Insert, transact, update_one

# More seconds than this, from any moment that is one, would be past the last year that a clock knows.
_MOST = 10**9


class Overtaken(Exception):
    """Another writer changed the request since it was read. Read it again and decide again."""


def get(request_id: str) -> AccessRequest | None:
    """Strongly read."""
    return read_item(RequestItem, _record, request_id)


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
        approval=_approval_map(request.approval),
        work=None if request.work is None else request.work.value,
        work_due_at=None if request.work_due_at is None else _precise(request.work_due_at),
        held_since=None if request.held_since is None else to_epoch(request.held_since),
        rule_hash=request.rule_hash,
        evidence=dict(request.evidence),
        identities=dict(request.identities) or None,
        scope=request.scope,
        open_subject=request.subject_id,
        ticket_key=_ticket_key(request.ticket_id) or None,
        version=1,
        audit_head=event.head,
    )
    try:
        transact([Insert(item), event.step])
    except ConditionFailed as error:
        raise Overtaken from error
    return _record(item)


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
        RequestItem.work_due_at.set(_precise(due_at)),
        RequestItem.work_attempts.set(0),
        RequestItem.work_error.remove(),
    ]


def set_work_due(due_at: datetime, *, attempts: int, error: str) -> list[Action]:
    return [
        RequestItem.work_due_at.set(_precise(due_at)),
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
    return [RequestItem.receipts.set((RequestItem.receipts | []).append([_receipt_map(receipt)]))]


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
    condition = (RequestItem.work == request.work.value) & (RequestItem.work_due_at == _precise(request.work_due_at))
    try:
        update_one(Change(RequestItem, request.request_id, [RequestItem.work_due_at.set(_precise(until))], condition))
    except ConditionFailed:
        return False
    return True


def postpone_work(request: AccessRequest, *, until: datetime, note: str) -> None:
    """Look again at ``until``; ``note`` says what is waited for. Bookkeeping of ordinary waiting: no version, no event.

    :raises Overtaken: when the request changed meanwhile.
    """
    assert request.work is not None
    condition = (RequestItem.work == request.work.value) & (RequestItem.version == request.version)
    actions = [RequestItem.work_due_at.set(_precise(until)), RequestItem.work_error.set(note)]
    try:
        update_one(Change(RequestItem, request.request_id, actions, condition))
    except ConditionFailed as error:
        raise Overtaken from error


def still_to_be_granted(request_id: str) -> Guard:
    """The guard under which a claim may be taken for this request."""
    return Guard(RequestItem, request_id, (RequestItem.status == Status.ACTIVE.value) & (RequestItem.work == Work.GRANT.value))


# Pages. The patterns are the design's indexes.


def page_by_status(
    status: Status,
    *,
    cursor: str | None,
    limit: int,
    between: tuple[datetime, datetime] | None = None,
    newest_first: bool = False,
) -> Page[AccessRequest]:
    """By end or deadline; ``between`` two moments, both included, where given."""
    condition = RequestItem.expires_at.between(*map(to_epoch, between)) if between is not None else None
    return query_page(
        RequestItem,
        status.value,
        index=RequestItem.expiration_index,
        pattern=f"requests.by_status:{status}:{newest_first}",
        convert=_record,
        cursor=cursor,
        limit=limit,
        range_condition=condition,
        newest_first=newest_first,
    )


def page_due(status: Status, *, until: datetime, cursor: str | None, limit: int) -> Page[AccessRequest]:
    """Those whose end or deadline is not after ``until``, for the sweep."""
    return query_page(
        RequestItem,
        status.value,
        index=RequestItem.expiration_index,
        pattern=f"requests.due:{status}",
        convert=_record,
        cursor=cursor,
        limit=limit,
        range_condition=RequestItem.expires_at <= to_epoch(until),
    )


def page_by_subject(subject_id: str, *, cursor: str | None, limit: int) -> Page[AccessRequest]:
    return query_page(
        RequestItem,
        subject_id,
        index=RequestItem.subject_index,
        pattern=f"requests.by_subject:{subject_id}",
        convert=_record,
        cursor=cursor,
        limit=limit,
        newest_first=True,
    )


def page_by_ticket(ticket_id: str, *, cursor: str | None, limit: int) -> Page[AccessRequest]:
    """Of each ticket alone: the index's key makes one of some that differ (the Kelvin sign is a ``k`` to it)."""
    key, wanted = _ticket_key(ticket_id), fold_key(ticket_id.strip())
    page = query_page(
        RequestItem,
        key,
        index=RequestItem.ticket_index,
        pattern=f"requests.by_ticket:{key}",
        convert=_record,
        cursor=cursor,
        limit=limit,
        newest_first=True,
    )
    return Page(tuple(one for one in page.items if fold_key(one.ticket_id.strip()) == wanted), page.next_cursor)


def _ticket_key(ticket_id: str) -> str:
    return ticket_id.strip().casefold()


def page_by_requester(requested_by: str, *, cursor: str | None, limit: int) -> Page[AccessRequest]:
    """Newest first."""
    return query_page(
        RequestItem,
        requested_by,
        index=RequestItem.requester_index,
        pattern=f"requests.by_requester:{requested_by}",
        convert=_record,
        cursor=cursor,
        limit=limit,
        newest_first=True,
    )


def page_ended(requested_by: str, *, cursor: str | None, limit: int) -> Page[AccessRequest]:
    """What is over, last ended first."""
    return query_page(
        RequestItem,
        requested_by,
        index=RequestItem.ended_index,
        pattern=f"requests.ended:{requested_by}",
        convert=_record,
        cursor=cursor,
        limit=limit,
        newest_first=True,
    )


def page_by_rule(rule_name: str, status: Status, *, cursor: str | None, limit: int) -> Page[AccessRequest]:
    """In no order."""
    return query_page(
        RequestItem,
        rule_name,
        index=RequestItem.rule_index,
        pattern=f"requests.by_rule:{rule_name}:{status}",
        convert=_record,
        cursor=cursor,
        limit=limit,
        range_condition=RequestItem.status == status.value,
    )


def page_by_account(account_id: str, *, cursor: str | None, limit: int) -> Page[AccessRequest]:
    return query_page(
        RequestItem,
        account_id,
        index=RequestItem.account_index,
        pattern=f"requests.by_account:{account_id}",
        convert=_record,
        cursor=cursor,
        limit=limit,
        newest_first=True,
    )


def page_open(subject_id: str, *, cursor: str | None, limit: int) -> Page[AccessRequest]:
    return query_page(
        RequestItem,
        subject_id,
        index=RequestItem.open_index,
        pattern=f"requests.open:{subject_id}",
        convert=_record,
        cursor=cursor,
        limit=limit,
    )


def page_work(work: Work, *, cursor: str | None, limit: int) -> Page[AccessRequest]:
    """Work by due time, earliest first."""
    return query_page(
        RequestItem,
        work.value,
        index=RequestItem.work_index,
        pattern=f"requests.work:{work}",
        convert=_record,
        cursor=cursor,
        limit=limit,
    )


def page_due_work(work: Work, *, until: datetime, cursor: str | None, limit: int) -> Page[AccessRequest]:
    """Work that is due by ``until``, for the sweep."""
    return _page_of_work(f"requests.due_work:{work}", work, RequestItem.work_due_at <= _precise(until), cursor, limit)


def page_work_ahead(work: Work, *, beyond: datetime, cursor: str | None, limit: int) -> Page[AccessRequest]:
    """Work whose due time lies after ``beyond``, for the sweep."""
    return _page_of_work(f"requests.work_ahead:{work}", work, RequestItem.work_due_at > _precise(beyond), cursor, limit)


def _page_of_work(pattern: str, work: Work, when: Condition, cursor: str | None, limit: int) -> Page[AccessRequest]:
    return query_page(
        RequestItem,
        work.value,
        index=RequestItem.work_index,
        pattern=pattern,
        convert=_record,
        cursor=cursor,
        limit=limit,
        range_condition=when,
    )


def _precise(moment: datetime) -> float:
    """Epoch seconds with milliseconds, rounded down: what is due now must not be stored as due in a moment."""
    return math.floor(moment.timestamp() * 1000) / 1000


def _moment(seconds: float | None) -> datetime | None:
    return None if seconds is None else from_epoch(seconds)


def _approval_map(demand: ApprovalDemand) -> dict[str, Any]:
    found: dict[str, Any] = {"required": demand.required, "quorum": demand.quorum}
    found |= {"groups": list(demand.groups), "users": list(demand.users)}
    if demand.groups_only:
        found["groups_only"] = list(demand.groups_only)
    return found | {"admins_of": demand.admins_of} if demand.admins_of else found


def _receipt_map(receipt: Receipt) -> dict[str, Any]:
    found: dict[str, Any] = {
        "work": receipt.work.value,
        "job_id": receipt.job_id,
        "job_status": receipt.job_status,
        "proved_at": _precise(receipt.proved_at),
        "kept_by": list(receipt.kept_by),
    }
    if receipt.called_at is not None:
        found["called_at"] = _precise(receipt.called_at)
    if receipt.lateness_seconds is not None:
        found["lateness_seconds"] = receipt.lateness_seconds
    return found


def _receipt(found: Mapping[str, Any]) -> Receipt:
    return Receipt(
        work=Work(found["work"]),
        job_id=found["job_id"],
        job_status=found["job_status"],
        called_at=_moment(found.get("called_at")),
        proved_at=from_epoch(found["proved_at"]),
        lateness_seconds=found.get("lateness_seconds"),
        kept_by=tuple(found["kept_by"]),
    )


def _require_whole(item: RequestItem, approval: Mapping[str, Any], target: Mapping[str, Any], evidence: Mapping[str, Any]) -> None:
    """What the classes of attributes don't tell, and everybody who has a request relies on.

    :raises ValueError: naming what is wrong.
    """
    parts = TARGET_PARTS.get(item.kind)
    if parts is None:
        raise ValueError(f"kind {item.kind!r} is unknown")
    wrong = [name for name in parts if not isinstance(target.get(name), str)]
    wrong += [name for name in ("groups", "users", "groups_only") if not _is_texts(approval.get(name, []))]
    wrong += [] if isinstance(approval["required"], bool) else ["approval.required"]
    wrong += [] if isinstance(evidence.get("tags") or {}, dict) else ["tags"]
    seconds = [evidence.get("session_seconds") or 0, evidence.get("most_per_person") or 0, item.work_attempts or 0, approval["quorum"]]
    numbers = [*seconds, item.duration_seconds, item.version]
    if wrong or not all(isinstance(number, int) and 0 <= number <= _MOST for number in numbers):
        raise ValueError(f"{', '.join(wrong) or 'a number'} makes no sense")


def _is_texts(value: object) -> bool:
    return isinstance(value, list) and all(isinstance(one, str) for one in value)


def _record(item: RequestItem) -> AccessRequest:
    approval, target, evidence = item.approval.as_dict(), item.target.as_dict(), item.evidence.as_dict()
    _require_whole(item, approval, target, evidence)
    return AccessRequest(
        request_id=item.request_id,
        kind=item.kind,
        subject_id=item.subject_id,
        requested_by=item.requested_by,
        target=target,
        account_id=item.account_id or "",
        permission_set=item.permission_set or "",
        reason=item.reason,
        ticket_id=item.ticket_id,
        duration_seconds=int(item.duration_seconds),
        submission_id=item.submission_id,
        rule_name=item.rule_name,
        rule_hash=item.rule_hash,
        approval=ApprovalDemand(
            required=approval["required"],
            quorum=int(approval["quorum"]),
            groups=tuple(approval["groups"]),
            users=tuple(approval["users"]),
            admins_of=approval.get("admins_of", ""),
            groups_only=tuple(approval.get("groups_only", ())),
        ),
        evidence=evidence,
        scope=item.scope,
        status=Status(item.status),
        requested_at=from_epoch(item.requested_at),
        expires_at=from_epoch(item.expires_at),
        extends=item.extends or "",
        approvals=frozenset(item.approvals or ()),
        decided_by=item.decided_by or "",
        decided_at=_moment(item.decided_at),
        decision_reason=item.decision_reason or "",
        granted_at=_moment(item.granted_at),
        ended_by=item.ended_by or "",
        revoked_at=_moment(item.revoked_at),
        work=None if item.work is None else Work(item.work),
        work_due_at=_moment(item.work_due_at),
        work_attempts=int(item.work_attempts or 0),
        work_error=item.work_error or "",
        receipts=tuple(_receipt(row) for row in item.receipts or ()),
        version=int(item.version),
        audit_head=item.audit_head,
        identities=item.identities.as_dict() if item.identities is not None else {},
        held_since=_moment(item.held_since),
    )
