"""What the events of a request tell of the access that it gave."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

from accessportal.audit.states import AuditEvent
from accessportal.kernel.clock import from_epoch, whole_second

_ASKED = ("request.submitted", "request.auto_approved", "request.taken_back")
_DECIDED = ("request.approval_given", "request.approved")
_ENDED = ("request.end_asked", "request.expired")


@dataclass(frozen=True, slots=True)
class RequestFacts:
    """By which rule, asked and decided by whom; ``right`` is its permission set. ``until``: when it was to end; of what is lent so many
    ``seconds`` from the hand-over. ``ended_at``: when somebody, or its time, ended it."""

    rule: str = ""
    asked_by: str = ""
    decided_by: tuple[str, ...] = ()
    right: str = ""
    until: datetime | None = None
    seconds: int = 0
    ended_at: datetime | None = None
    ended_by: str = ""

    def end(self, since: datetime) -> datetime | None:
        """When what was there ``since`` then was to end."""
        return whole_second(since) + timedelta(seconds=self.seconds) if self.seconds else self.until


def facts_of(events: Sequence[AuditEvent], *, at: datetime) -> RequestFacts:
    """As far as had happened ``at``: made anew later, it is the same."""
    told = [event for event in events if event.at <= at]
    asked = next((event for event in told if event.action in _ASKED), None)
    if asked is None:
        return RequestFacts()
    rule, target = str(asked.data.get("rule_name", "")), asked.data.get("target") or {}
    deciders = dict.fromkeys(_decider(event) for event in told if event.action in _DECIDED)
    ends = [event.data["expires_at"] for event in told if event.data.get("expires_at") and event.action not in _ENDED]
    ended = next((event for event in told if event.action in _ENDED), None)
    is_handed_over = asked.data.get("kind") == "account_lease" and not target.get("continues")
    return RequestFacts(
        rule=rule,
        asked_by=asked.actor,
        decided_by=tuple(deciders) or (f"rule:{rule}",),
        right=str(target.get("permission_set", "")),
        until=from_epoch(int(ends[-1])) if ends else None,
        seconds=int(asked.data.get("duration_seconds", 0)) if is_handed_over else 0,
        ended_at=ended.at if ended else None,
        ended_by=ended.actor if ended else "",
    )


def _decider(event: AuditEvent) -> str:
    approver = event.data.get("in_place_of")
    return f"{event.actor} in place of {approver}" if approver else event.actor
