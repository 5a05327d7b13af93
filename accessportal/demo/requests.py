"""Memberships of the demo that end by themselves, asked for and decided as people do it; and one that waits for a decision."""

from __future__ import annotations

from datetime import datetime

from accessportal.access_requests import operations
from accessportal.access_requests.states import AccessRequest
from accessportal.kernel.actors import Actor, person

_NINA = person("nina@example.com")
_TOM = person("tom@example.com")
_FEMI = person("femi@example.com")
_MEI = person("mei@example.com")
_HOUR = 3_600


def ask_for_memberships(*, now: datetime) -> None:
    """Nina looks into another team's work for eight hours, Tom helps a team out for a week, and Femi waits for an admin.

    The worker makes the first two so. To be called once the demo's own rules are in force.
    """
    _asked(_NINA, "/engineering/web", "reader", hours=8, reason="Read how the checkout uses the ledger", now=now)
    helping = _asked(_TOM, "/engineering/mobile", "contributor", hours=24 * 7, reason="Help with the release", now=now)
    operations.approve(request_id=helping.request_id, reason="Welcome.", actor=_MEI, now=now)
    _asked(_FEMI, "/engineering/payments/on-call", "contributor", hours=24, reason="Swap shifts with Nina", now=now)


def _asked(who: Actor, group_id: str, role: str, *, hours: int, reason: str, now: datetime) -> AccessRequest:
    return operations.submit(
        kind="group",
        subject_id=None,
        target={"group": group_id, "role": role},
        duration_seconds=hours * _HOUR,
        reason=reason,
        ticket_id="",
        submission_id=f"demo-{group_id}",
        actor=who,
        now=now,
    )
