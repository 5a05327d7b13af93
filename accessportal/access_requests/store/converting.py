"""Requests and their parts as they stand in items."""

from __future__ import annotations

import math
from collections.abc import Mapping
from datetime import datetime
from typing import Any

from accessportal.access_requests.kind import KINDS
from accessportal.access_requests.models import RequestItem
from accessportal.access_requests.states import AccessRequest, ApprovalDemand, Receipt, Status, Work
from accessportal.kernel.clock import from_epoch
from accessportal.store.reading import NewerItem

# More seconds than this, from any moment that is one, would be past the last year that a clock knows.
_MOST = 10**9


def precise(moment: datetime) -> float:
    """Epoch seconds with milliseconds, rounded down: what is due now must not be stored as due in a moment."""
    return math.floor(moment.timestamp() * 1000) / 1000


def _moment(seconds: float | None) -> datetime | None:
    return None if seconds is None else from_epoch(seconds)


def ticket_key(ticket_id: str) -> str:
    return ticket_id.strip().casefold()


def approval_map(demand: ApprovalDemand) -> dict[str, Any]:
    found: dict[str, Any] = {"required": demand.required, "quorum": demand.quorum}
    found |= {"groups": list(demand.groups), "users": list(demand.users)}
    if demand.groups_only:
        found["groups_only"] = list(demand.groups_only)
    return found | {"admins_of": demand.admins_of} if demand.admins_of else found


def receipt_map(receipt: Receipt) -> dict[str, Any]:
    found: dict[str, Any] = {
        "work": receipt.work.value,
        "job_id": receipt.job_id,
        "job_status": receipt.job_status,
        "proved_at": precise(receipt.proved_at),
        "kept_by": list(receipt.kept_by),
    }
    if receipt.called_at is not None:
        found["called_at"] = precise(receipt.called_at)
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
    kind = KINDS.get(item.kind)
    if kind is None:
        raise NewerItem(f"its kind {item.kind[:40]!r} is not known here")
    wrong = [name for name in kind.target.parts if not isinstance(target.get(name), str)]
    wrong += [name for name in ("groups", "users", "groups_only") if not _is_texts(approval.get(name, []))]
    wrong += [] if isinstance(approval["required"], bool) else ["approval.required"]
    wrong += [] if isinstance(evidence.get("tags") or {}, dict) else ["tags"]
    seconds = [evidence.get("session_seconds") or 0, evidence.get("most_per_person") or 0, item.work_attempts or 0, approval["quorum"]]
    numbers = [*seconds, item.duration_seconds, item.version]
    if wrong or not all(isinstance(number, int) and 0 <= number <= _MOST for number in numbers):
        raise ValueError(f"{', '.join(wrong) or 'a number'} makes no sense")


def _is_texts(value: object) -> bool:
    return isinstance(value, list) and all(isinstance(one, str) for one in value)


def record(item: RequestItem) -> AccessRequest:
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
