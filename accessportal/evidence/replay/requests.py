"""Requests as their events tell them."""

from __future__ import annotations

from datetime import datetime
from typing import Any

from accessportal.access_requests.states import AccessRequest, Status, Work
from accessportal.audit.states import AuditEvent
from accessportal.evidence.replay.telling import NOTHING, UNTOLD, Facts, Kind, actor, data, moment, of, sets, subject
from accessportal.kernel.actors import Actor

_ASKED = ("kind", "target", "duration_seconds", "reason", "ticket_id", "rule_name", "rule_hash", "expires_at", "extends")


def _requested_by(event: AuditEvent) -> Any:
    """A program asks in somebody's name."""
    return data("requested_by")(event) if Actor(event.actor).is_program else event.actor


def _scope(event: AuditEvent) -> str:
    return event.scope


def _asked(status: Status, **more: Any) -> Any:
    told = {
        "status": status,
        "subject_id": subject,
        "asked_by": actor,
        "requested_by": _requested_by,
        "requested_at": moment,
        "scope": _scope,
        "approvals": [],
        "was_granted": False,
        "ended_by": "",
    }
    return sets(*_ASKED, **told | more)


def _asker_of(request: AccessRequest) -> str:
    return request.asked_through or request.requested_by


def _work_found(request: AccessRequest) -> Work | None:
    """Without a time, no list of what is due has it."""
    return request.work if request.work_due_at is not None else None


def _granted(event: AuditEvent, _before: Facts) -> Facts:
    """What is lent has its end and its account only now."""
    return {"work": None, "was_granted": True, **{name: event.data[name] for name in ("expires_at", "account_id") if name in event.data}}


def _may_vanish(facts: Facts, now: datetime) -> bool:
    """DynamoDB deletes what is over, some time after its ``purge_at``; of older events that is not known."""
    if facts.get("status") not in {status for status in Status if status.is_terminal}:
        return False
    purge_at = facts.get("purge_at", UNTOLD)
    return purge_at is UNTOLD or now.timestamp() >= purge_at


REQUEST = Kind(
    acts={
        "request.submitted": _asked(Status.PENDING, work=None, decided_by=""),
        "request.auto_approved": _asked(Status.ACTIVE, work=Work.GRANT, decided_by=lambda event: f"rule:{event.data['rule_name']}"),
        # Its person takes back what a program may have asked for.
        "request.taken_back": _asked(Status.ACTIVE, work=Work.GRANT, decided_by="undo", asked_by=UNTOLD, requested_by=actor),
        "request.approval_given": sets("approvals"),
        "request.approved": sets(
            "approvals",
            "status",
            "expires_at",
            work=Work.GRANT,
            decided_by=actor,
            decided_at=moment,
            decision_reason=data("reason"),
        ),
        "request.denied": sets("status", "purge_at", decided_by=actor, decided_at=moment, decision_reason=data("reason")),
        "request.cancelled": sets("status", "purge_at", decided_by=actor, decided_at=moment, decision_reason=data("reason", "")),
        "request.lapsed": sets("status", "purge_at"),
        "request.granted": _granted,
        "request.end_asked": sets("expires_at", work=Work.REVOKE, ended_by=actor),
        "request.expired": sets("expires_at", work=Work.REVOKE),
        "request.revoked": sets("status", "purge_at", work=None),
        "request.work_delayed": sets("work"),
        "request.retry_asked": sets("work"),
        "request.budget_reached": NOTHING,
    },
    facts=of(
        *_ASKED,
        "status",
        "subject_id",
        "requested_by",
        "requested_at",
        "scope",
        "approvals",
        "decided_by",
        "decided_at",
        "decision_reason",
        "ended_by",
        "purge_at",
        "account_id",
        asked_by=_asker_of,
        work=_work_found,
        was_granted=lambda request: request.granted_at is not None,
    ),
    may_vanish=_may_vanish,
)
