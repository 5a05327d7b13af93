"""What the forms of all kinds share: what a query may fill in, and what would happen if the form were sent now."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from datetime import datetime, timedelta
from typing import Any
from urllib.parse import urlencode

from django.urls import reverse

from accessportal.access_requests import queries
from accessportal.access_requests.kind import Kind, kind_named
from accessportal.access_requests.queries import ApproverBook
from accessportal.access_requests.states import AccessRequest, Preview
from accessportal.kernel.actors import Actor
from accessportal.kernel.clock import zone_named
from accessportal.kernel.durations import parse_duration
from accessportal.kernel.errors import Conflict, PortalError
from accessportal.kernel.texts import LONGEST_REASON
from accessportal.web.forms import MAX_DURATION, MAX_NAME, MAX_TICKET
from accessportal.web.presenting import Tone, typed_duration

_COMMON = {"duration": MAX_DURATION, "ticket_id": MAX_TICKET, "reason": LONGEST_REASON, "extends": MAX_NAME, "zone": MAX_NAME}


def plain(kind: Kind, given: Mapping[str, Any]) -> dict[str, str]:
    """One value a name, cut to what the form takes: a preview never judges more than that."""
    limits = _COMMON | dict.fromkeys(kind.fields.names, MAX_NAME)
    return {name: str(given[name])[:limit] for name, limit in limits.items() if name in given}


def target_of(held: AccessRequest) -> dict[str, str]:
    """A request's target and subject, as the form's fields would say it."""
    subject = {"subject": held.subject_id} if held.subject_id.startswith("/") else {}
    return queries.asked(request=held) | subject


def again_url(held: AccessRequest) -> str:
    """The form of its kind, filled in like this request. The ticket is left out: it belonged to that time."""
    kind = kind_named(held.kind)
    fresh = {name: value for name, value in target_of(held).items() if name not in kind.fields.continued}
    given = {**fresh, "duration": typed_duration(held.duration_seconds), "reason": held.reason}
    return f"{reverse('new_request', args=[kind.name])}?{urlencode(given)}"


def foresee(kind: Kind, given: Mapping[str, Any], actor: Actor, book: ApproverBook) -> dict[str, Any]:
    """Return the preview, or why there is none yet: ``hint`` (nothing chosen) or ``trouble`` (something can't be read). Without a duration
    it is that of the rule's usual one."""
    text = {name: value.replace("\0", "").strip() for name, value in plain(kind, given).items()}
    now = book.now
    if not all(text.get(name) for name in kind.fields.needed):
        return {"hint": kind.fields.hint}
    seconds, trouble = _seconds(text.get("duration", ""), now.astimezone(zone_named(text.get("zone", ""))))
    impossible = {"tone": Tone.STOP, "headline": "Not possible like this"}
    try:
        foreseen = _ask_preview(kind, text, seconds, actor, book)
    except Conflict as error:  # several accounts carry the name
        return impossible | {"trouble": error.message}
    if not trouble and seconds is None and not text.get("extends") and foreseen.default_duration_seconds:
        seconds = foreseen.default_duration_seconds
        foreseen = replace(foreseen, duration_seconds=seconds)
    verdict = impossible if trouble else _verdict(foreseen)
    ends_at = now + timedelta(seconds=seconds) if seconds is not None and seconds <= foreseen.max_duration_seconds else None
    typed: dict[str, Any] = {"typed": text}
    if foreseen.default_duration_seconds:
        typed["usual"] = typed_duration(foreseen.default_duration_seconds)
    return verdict | typed | {"preview": foreseen, "trouble": trouble, "ends_at": ends_at, "now": now}


def _verdict(preview: Preview) -> dict[str, Any]:
    if preview.outcome == "at_once":
        return {"tone": Tone.LIVE, "headline": "Approved at once"}
    if preview.outcome == "needs_approval":
        return {"tone": Tone.WAIT, "headline": "Needs one approval" if preview.quorum == 1 else f"Needs {preview.quorum} approvals"}
    return {"tone": Tone.STOP, "headline": "Not possible like this"}


def _ask_preview(kind: Kind, text: Mapping[str, str], seconds: int | None, actor: Actor, book: ApproverBook) -> Preview:
    return queries.preview(
        kind=kind.name,
        subject_id=text.get("subject") or None,
        target={name: text.get(name, "") for name in kind.fields.names if name != "subject"},
        duration_seconds=seconds,
        ticket_id=text.get("ticket_id") or None,
        extends=queries.get(request_id=text["extends"], actor=actor, now=book.now, book=book) if text.get("extends") else None,
        actor=actor,
        book=book,
    )


def _seconds(text: str, now: datetime) -> tuple[int | None, str]:
    try:
        return (parse_duration(text, now=now), "") if text else (None, "")
    except PortalError as error:
        return None, error.message
