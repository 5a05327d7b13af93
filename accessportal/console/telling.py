"""Audit events and facts as people read them. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from accessportal.audit.actions import ACTIONS
from accessportal.audit.states import AuditEvent
from accessportal.kernel.clock import from_epoch
from accessportal.kernel.durations import format_duration

_LONGEST = 400
_TONES = {
    "request.approved": "live",
    "request.auto_approved": "live",
    "request.granted": "live",
    "request.denied": "stop",
    "request.lapsed": "wait",
    "request.work_delayed": "wait",
    "assignment.present": "live",
    "assignment.job_forgotten": "wait",
    "rule.removed": "stop",
    "person.disabled": "stop",
    "user.disabled": "stop",
    "user.deleted": "stop",
    "user.revoked": "stop",
    "user.granted": "live",
    "sign_in.refused": "stop",
    "group.disabled": "stop",
    "group.deleted": "stop",
    "token.created": "live",
    "token.revoked": "stop",
    "sandbox.taken": "live",
    "sandbox.clean_failed": "wait",
    "sandbox.stale": "wait",
    "sandbox.quarantined": "stop",
    "sandbox.sync_stopped": "stop",
}

# What of an event's data is worth a line in a list; the rest unfolds.
_BRIEF = {
    "request.submitted": ("reason", "ticket_id", "duration_seconds", "rule_name"),
    "request.auto_approved": ("reason", "ticket_id", "duration_seconds", "rule_name"),
    "request.approval_given": ("reason",),
    "request.approved": ("reason", "expires_at"),
    "request.denied": ("reason",),
    "request.cancelled": ("reason",),
    "request.end_asked": ("reason",),
    "request.work_delayed": ("error", "attempts", "work_due_at"),
    "assignment.claimed": ("claim",),
    "assignment.released": ("claim",),
    "rule.added": ("version",),
    "rule.changed": ("version",),
    "rule.removed": ("version",),
    "rules.applied": ("version", "added", "changed", "removed"),
    "membership.granted": ("email", "group_id", "role"),
    "membership.revoked": ("email", "group_id", "role"),
    "user.created": ("name",),
    "user.renamed": ("name", "old_name"),
    "user.deleted": ("reason",),
    "user.granted": ("group_id", "role", "ends_at"),
    "user.revoked": ("group_id", "role", "reason"),
    "user.role_changed": ("group_id", "old_role", "role"),
    "user.signed_in": ("method", "issuer"),
    "sign_in.refused": ("reason", "email"),
    "group.created": ("name", "parent_id"),
    "group.renamed": ("name", "old_name"),
    "group.moved": ("old_parent_id", "parent_id", "groups_moved"),
    "token.created": ("token_scope", "rate_per_minute", "expires_at"),
    "token.revoked": ("reason",),
    "sandbox.taken": ("track", "fence", "expires_at"),
    "sandbox.adopted": ("track", "fence", "expires_at"),
    "sandbox.released": ("track", "reason"),
    "sandbox.expired": ("track",),
    "sandbox.clean_failed": ("error", "attempts"),
    "sandbox.quarantined": ("track", "reason"),
    "sandbox.run_ordered": ("run_kind",),
    "sandbox.sync_stopped": ("reason",),
}


@dataclass(frozen=True, slots=True)
class Line:
    """``moment`` instead of ``words`` where the value is a time."""

    label: str
    words: str
    moment: datetime | None = None


def title_of(event: AuditEvent) -> str:
    """The registered headline; the bare name for an action that this version of the code does not know."""
    spec = ACTIONS.get(event.action)
    return spec.title if spec else event.action


def tone_of(event: AuditEvent) -> str:
    return _TONES.get(event.action, "")


def brief_lines(event: AuditEvent) -> Iterator[Line]:
    """The few values that say what the event was about, in a fixed order."""
    for key in _BRIEF.get(event.action, ()):
        yield from lines_of_data({key: event.data[key]} if key in event.data else {})


def has_more(event: AuditEvent) -> bool:
    """Whether the event holds data that :func:`brief_lines` leaves out."""
    return bool(event.data.keys() - set(_BRIEF.get(event.action, ())))


def lines_of_data(data: Mapping[str, Any], *, prefix: str = "") -> Iterator[Line]:
    """One line for each value; maps are flattened, empty values left out."""
    for key in sorted(data):
        value, label = data[key], f"{prefix}{key.replace('_', ' ')}"
        if isinstance(value, Mapping):
            yield from lines_of_data(value, prefix=f"{label}, ")
        elif value not in ("", None, [], ()):
            yield _line(key, label, value)


def _line(key: str, label: str, value: Any) -> Line:
    label = label[:1].upper() + label[1:]
    is_number = isinstance(value, int | float) and not isinstance(value, bool)
    if is_number and (key.endswith("_at") or key == "deadline"):
        with suppress(ValueError):
            return Line(label, "", from_epoch(float(value)))
    if is_number and key.endswith("_seconds"):
        label = label.removesuffix(" seconds")
        return Line(label, format_duration(int(value)) if float(value).is_integer() else f"{float(value):.3f} s")
    return Line(label, _words(value))


def _words(value: Any) -> str:
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, list | tuple | set | frozenset):
        return ", ".join(_words(each) for each in value)
    text = str(value)
    return text if len(text) <= _LONGEST else text[:_LONGEST] + "…"
