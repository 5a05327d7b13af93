"""What the demo's people ask for, and decide, as everybody does: access that ends by itself, and a request that waits."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime

from accessportal.access_requests import operations
from accessportal.access_requests.states import AccessRequest
from accessportal.kernel.actors import person

_HOUR = 3_600


def ask_for_memberships(*, now: datetime) -> None:
    """Ask for Nina (another team's work, eight hours), Tom (helps out for a week) and Femi, who waits for an admin; the worker gives the
    first two theirs. To be called once the demo's rules are in force."""
    _join("nina", "/engineering/web", "reader", hours=8, reason="Read how the checkout uses the ledger", now=now)
    helping = _join("tom", "/engineering/mobile", "contributor", hours=24 * 7, reason="Help with the release", now=now)
    operations.approve(request_id=helping.request_id, reason="Welcome.", actor=person("mei@example.com"), now=now)
    _join("femi", "/engineering/payments/on-call", "contributor", hours=24, reason="Swap shifts with Nina", now=now)


def ask_for_sandbox(*, now: datetime) -> None:
    """Alice has one for two hours as soon as the worker comes by. To be called once the demo's own rules are in force."""
    reason = "Try the new parser on last week's exports"
    ask("alice", "sandbox", {"name_prefix": "lab-python"}, seconds=2 * _HOUR, reason=reason, name="sandbox", now=now)


def ask(
    who: str, kind: str, target: Mapping[str, str], *, seconds: int, reason: str, ticket: str = "", name: str, now: datetime
) -> AccessRequest:
    """A request of ``who@example.com``; the same one where there is one of this ``name`` already."""
    return operations.submit(
        kind=kind,
        subject_id=None,
        target=target,
        duration_seconds=seconds,
        reason=reason,
        ticket_id=ticket,
        submission_id=f"demo-{name}",
        actor=person(f"{who}@example.com"),
        now=now,
    )


def _join(who: str, group_id: str, role: str, *, hours: int, reason: str, now: datetime) -> AccessRequest:
    return ask(who, "group", {"group": group_id, "role": role}, seconds=hours * _HOUR, reason=reason, name=group_id, now=now)
