"""Requests as their events tell them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from accessportal.access_requests.queries import CHECKED, check_of, checked
from accessportal.access_requests.states import AccessRequest, Status, Work
from accessportal.access_requests.thread import Comment, CommentKind, Threaded
from accessportal.audit.queries import nameless
from accessportal.audit.states import AuditEvent
from accessportal.evidence.replay.telling import (
    NOTHING,
    UNTOLD,
    Act,
    Check,
    Facts,
    Kind,
    Marks,
    actor,
    data,
    moment,
    of,
    plain,
    sets,
    subject,
)
from accessportal.kernel.actors import Actor
from accessportal.kernel.clock import to_epoch

_COMMENT = "comment "
_ASKED = ("kind", "target", "duration_seconds", "reason", "ticket_id", "rule_name", "rule_hash", "expires_at", "extends")


def _requested_by(event: AuditEvent) -> Any:
    """A program asks in somebody's name."""
    return data("requested_by")(event) if Actor(event.actor).is_program else event.actor


def _asked(status: Status, **more: Any) -> Any:
    told = {
        "status": status,
        "subject_id": subject,
        "asked_by": actor,
        "requested_by": _requested_by,
        "requested_at": moment,
        "scope": lambda event: event.scope,
        "approvals": [],
        "in_place_of": {},
        "was_granted": False,
        "ended_by": "",
        "comments": 0,
        "awaits_answer": False,
        "asked_back_by": "",
    }
    return sets(*_ASKED, **told | more)


# What older versions changed by these and told no check of.
_UNTOLD_OF: Mapping[str, tuple[str, ...]] = {
    "request.approval_given": ("identities",),
    "request.approved": ("identities", "held_since"),
    "request.granted": ("receipts", "granted_at", "account_id", "held_since"),
    "request.end_asked": ("was_to_end_at",),
    "request.revoked": ("receipts", "revoked_at"),
}


def _checked(act: Act) -> Act:
    """Also what the event tells checks and marks of; the first one tells what there is, so that all else is not there."""

    def acted(event: AuditEvent, before: Facts) -> Facts:
        told: dict[str, Any] = {}
        if "identities" in event.data:
            told["identities"] = Marks(dict(plain(event.data["identities"])))
        if "checks" in event.data:
            told |= dict.fromkeys(CHECKED) if event.sequence == 1 else {}
            told |= {name: Check(check) for name, check in event.data["checks"].items()}
        is_told = {"identities": "identities" in event.data}
        untold = (name for name in _UNTOLD_OF.get(event.action, ()) if not is_told.get(name, "checks" in event.data))
        return dict.fromkeys(untold, UNTOLD) | told | {**act(event, before)}

    return acted


def _work_found(request: AccessRequest) -> Work | None:
    """Without a time, no list of what is due has it."""
    return request.work if request.work_due_at is not None else None


def _granted(event: AuditEvent, _before: Facts) -> Facts:
    """What is lent has its end and its account only now."""
    return {"work": None, "was_granted": True, **{name: event.data[name] for name in ("expires_at", "account_id") if name in event.data}}


def _decided(act: Act) -> Act:
    """Whoever decided may have done so in the place of an approver."""

    def decided(event: AuditEvent, before: Facts) -> Facts:
        approver, known = event.data.get("in_place_of"), before.get("in_place_of", UNTOLD)
        return {**act(event, before), **({"in_place_of": {**known, event.actor: approver}} if approver and known is not UNTOLD else {})}

    return decided


def _may_vanish(facts: Facts, now: datetime) -> bool:
    """DynamoDB deletes what is over, some time after its ``purge_at``; of older events that is not known."""
    if facts.get("status") not in {status for status in Status if status.is_terminal}:
        return False
    purge_at = facts.get("purge_at", UNTOLD)
    return purge_at is UNTOLD or now.timestamp() >= purge_at


_facts_of_request = of(
    *_ASKED,
    "status",
    "subject_id",
    "requested_by",
    "requested_at",
    "scope",
    "approvals",
    "in_place_of",
    "decided_by",
    "decided_at",
    "decision_reason",
    "ended_by",
    "purge_at",
    "comments",
    "awaits_answer",
    "asked_back_by",
    asked_by=lambda request: request.asked_through or request.requested_by,
    work=_work_found,
    was_granted=lambda request: request.granted_at is not None,
    identities=lambda request: request.identities,
)


def _facts(threaded: Threaded) -> dict[str, Any]:
    told = {_fact_of(number): {"state": "deleted with the request"} for number in range(1, threaded.request.comments + 1)}
    found = {_fact_of(one.number): _found(one) for one in threaded.thread}
    of_request: dict[str, Any] = _facts_of_request(threaded.request) | plain(checked(threaded.request))
    return of_request | (told if threaded.is_purged else {}) | found


def _found(comment: Comment) -> dict[str, Any]:
    text = comment.text
    return {
        "kind": comment.kind.value,
        "by": comment.written_by,
        "at": to_epoch(comment.written_at),
        "checks": [check_of(text, comment.salt), check_of(nameless(text), comment.salt)],
        "state": "erased" if comment.is_erased else "names the erased" if "person-" in text else "",
    }


@dataclass(frozen=True, slots=True)
class _Kept:
    """A comment as it was written. ``is_nameless``: its hash has pseudonyms, so it holds when somebody in the text is erased."""

    by: str
    at: int
    kind: str
    check: str
    is_nameless: bool

    def is_met_by(self, found: Any) -> bool:
        if not isinstance(found, dict):
            return False
        if found["state"] == "deleted with the request":
            return True
        is_same = found["by"] == self.by and abs(found["at"] - self.at) <= 1 and found["kind"] == self.kind
        is_open = found["state"] == "erased" or (found["state"] and not self.is_nameless)
        return bool(is_same and (is_open or found["checks"][self.is_nameless] == self.check))

    def __str__(self) -> str:
        return f"{self.kind} by {self.by}"


def _commented(event: AuditEvent, _before: Facts) -> Facts:
    number, kind = int(event.data["number"]), event.data["comment_kind"]
    told: dict[str, Any] = {"comments": number}
    if kind == CommentKind.QUESTION:
        told |= {"awaits_answer": True, "asked_back_by": event.actor}
    if kind == CommentKind.ANSWER:
        told |= {"awaits_answer": False}
    kept = _Kept(event.actor, to_epoch(event.at), kind, event.data["check"], bool(event.pseudonym_id))
    return told | {_fact_of(number): kept}


def _fact_of(number: int) -> str:
    return f"{_COMMENT}{number}"


_ACTS: Mapping[str, Act] = {
    "request.submitted": _asked(Status.PENDING, work=None, decided_by=""),
    "request.auto_approved": _asked(Status.ACTIVE, work=Work.GRANT, decided_by=lambda event: f"rule:{event.data['rule_name']}"),
    # Its person takes back what a program may have asked for.
    "request.taken_back": _asked(Status.ACTIVE, work=Work.GRANT, decided_by="undo", asked_by=UNTOLD, requested_by=actor),
    "request.approval_given": _decided(sets("approvals")),
    "request.approved": _decided(
        sets(
            "approvals",
            "status",
            "expires_at",
            work=Work.GRANT,
            decided_by=actor,
            decided_at=moment,
            decision_reason=data("reason"),
        )
    ),
    "request.denied": _decided(sets("status", "purge_at", decided_by=actor, decided_at=moment, decision_reason=data("reason"))),
    "request.cancelled": sets("status", "purge_at", decided_by=actor, decided_at=moment, decision_reason=data("reason", "")),
    "request.lapsed": sets("status", "purge_at"),
    "request.granted": _granted,
    "request.end_asked": sets("expires_at", work=Work.REVOKE, ended_by=actor),
    "request.expired": sets("expires_at", work=Work.REVOKE),
    "request.revoked": sets("status", "purge_at", work=None),
    "request.work_delayed": sets("work"),
    "request.retry_asked": sets("work"),
    "request.budget_reached": NOTHING,
    "request.commented": _commented,
}

REQUEST = Kind(
    acts={action: _checked(act) for action, act in _ACTS.items()},
    facts=_facts,
    many=_COMMENT,
    may_vanish=_may_vanish,
)
