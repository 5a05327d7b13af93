"""The audit events of a request, told as a story."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from accessportal.access_requests.states import AccessRequest
from accessportal.audit.actions import ACTIONS
from accessportal.audit.states import AuditEvent
from accessportal.directory.states import is_by_admin
from accessportal.kernel.durations import format_duration
from accessportal.web.names import Names
from accessportal.web.presenting import Tone, seconds_after_end, words_for_time


@dataclass(frozen=True, slots=True)
class Line:
    """One event. ``by`` is empty where the portal itself acted. ``quote`` is in somebody's own words."""

    title: str
    by: str
    at: datetime
    tone: Tone | None
    notes: tuple[str, ...]
    quote: str
    code: str


_PLACES = {"aws_account": "IAM Identity Center", "group": "the directory", "sandbox": "the pool"}
_TONES = {
    "request.granted": Tone.LIVE,
    "request.denied": Tone.STOP,
    "request.lapsed": Tone.STOP,
    "request.work_delayed": Tone.WAIT,
}


def tell(events: Iterable[AuditEvent], names: Names, *, request: AccessRequest) -> tuple[Line, ...]:
    """Newest first. The request says where it was proved, and how long after its end it was gone."""
    place = _PLACES.get(request.kind, "the outside world")
    gone = seconds_after_end(request.receipts[-1].proved_at, request) if request.revoked_at and request.receipts else None
    return tuple(_line(event, names, place, gone) for event in sorted(events, key=lambda event: event.sequence, reverse=True))


def _line(event: AuditEvent, names: Names, place: str, gone_seconds: float | None) -> Line:
    spec = ACTIONS.get(event.action)
    receipt = event.data.get("receipt")
    return Line(
        title=spec.title if spec else event.action,
        by="" if event.actor.startswith("system:") else names(event.actor),
        at=event.at,
        tone=_TONES.get(event.action),
        notes=_notes(event, place, gone_seconds),
        # The reason for asking is among the facts; here are the words that others added.
        quote="" if event.sequence == 1 else str(event.data.get("reason") or ""),
        code=str(receipt.get("job_id") or "") if isinstance(receipt, dict) else "",
    )


def _notes(event: AuditEvent, place: str, gone_seconds: float | None) -> tuple[str, ...]:
    describe = _NOTES.get(event.action)
    if describe is None:
        return ()
    try:
        return tuple(describe({**event.data, "gone_seconds": gone_seconds}, place))
    except (ArithmeticError, AttributeError, LookupError, TypeError, ValueError):
        # One event that was changed after it was written does not take the page of the request away.
        return ("what it told can't be read any more: somebody has changed it",)


def _asked(data: dict[str, Any], place: str) -> Iterable[str]:
    yield f"for {format_duration(int(data['duration_seconds']))}"
    if data.get("rule_name"):
        yield f"rule {data['rule_name']}"
    if data.get("ticket_id"):
        yield str(data["ticket_id"])
    if data.get("extends"):
        yield "extends an earlier request"


def _approved(data: dict[str, Any], place: str) -> Iterable[str]:
    quorum, approvals = data.get("quorum"), data.get("approvals")
    if isinstance(quorum, int) and quorum > 1 and approvals is not None:
        count = len(approvals) if isinstance(approvals, list | tuple) else int(approvals)
        yield f"{count} of {quorum} approvals"
    if data.get("fallback"):
        yield "as an operator, because the rule's own approvers can't decide"


def _granted(data: dict[str, Any], place: str) -> Iterable[str]:
    yield f"proved present in {place}"
    yield from _also_held(data)


def _revoked(data: dict[str, Any], place: str) -> Iterable[str]:
    receipt = data.get("receipt") or {}
    kept, gone = receipt.get("kept_by") or (), data["gone_seconds"]
    when = "" if gone is None else f" {_seconds(gone)} after the end"
    if any(map(is_by_admin, kept)):
        yield f"claim given back{when}; the membership itself stays, given directly by an admin"
    elif kept:
        yield f"claim given back{when}; the access itself stays for another request"
    else:
        yield f"proved gone from {place}{when}"
    sent = receipt.get("lateness_seconds")
    if sent is not None and not kept:
        yield f"deletion sent {_seconds(float(sent))} after the end"


def _also_held(data: dict[str, Any]) -> Iterable[str]:
    kept = (data.get("receipt") or {}).get("kept_by") or ()
    others = [claim for claim in kept if not is_by_admin(claim)]
    if others:
        yield f"also held by {len(others)} other request{'' if len(others) == 1 else 's'}"
    if len(others) < len(kept):
        yield "also given directly by an admin"


def _delayed(data: dict[str, Any], place: str) -> Iterable[str]:
    yield str(data.get("error") or data.get("error_code") or "the outside world did not answer")
    if data.get("attempts"):
        yield f"attempt {data['attempts']}"


def _seconds(seconds: float) -> str:
    return f"{seconds:.1f} s" if seconds < 60 else words_for_time(seconds)


_NOTES: dict[str, Callable[[dict[str, Any], str], Iterable[str]]] = {
    "request.submitted": _asked,
    "request.auto_approved": _asked,
    "request.approval_given": _approved,
    "request.approved": _approved,
    "request.granted": _granted,
    "request.revoked": _revoked,
    "request.work_delayed": _delayed,
}
