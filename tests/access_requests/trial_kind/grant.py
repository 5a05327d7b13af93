"""Granting: the badge of a person is in a door's list. The list is the outside world of this kind."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import datetime, timedelta
from typing import Any

from accessportal.access_requests.kind import Grant
from accessportal.access_requests.states import AccessRequest, PlaceInLine
from accessportal.kernel.actors import Actor
from accessportal.kernel.clock import Clock, whole_second
from accessportal.kernel.decisions import Decision, allow, refuse
from accessportal.kernel.proofs import Proof, Waiting
from accessportal.store.transactions import Guard, transact

BADGES: set[tuple[str, str]] = set()
"""Door and request."""
LONGEST_WAIT_SECONDS = 72 * 3600


class DoorGrant(Grant):
    def grant(self, *, request: AccessRequest, guards: Sequence[Guard], actor: Actor, clock: Clock) -> Proof | Waiting:
        now = clock.now()
        transact(list(guards))
        BADGES.add(_badge(request))
        return Proof(_badge(request) in BADGES, f"badge-{request.target['door']}", "LISTED", now, now)

    def revoke(self, *, request: AccessRequest, actor: Actor, clock: Clock) -> Proof | Waiting:
        BADGES.discard(_badge(request))
        return Proof(_badge(request) in BADGES, "", "", clock.now(), clock.now())


class LentDoorGrant(DoorGrant):
    """One badge for each door, that one person has at a time: who comes later waits, and their time begins with the badge."""

    def longest_wait_seconds(self, stored: Mapping[str, Any]) -> int:
        return LONGEST_WAIT_SECONDS

    def may_take_back(self, request: AccessRequest, *, now: datetime) -> Decision:
        if any(door == request.target["door"] for door, _ in BADGES):
            return refuse("Somebody else has the badge by now.", code="undo_over")
        return allow("The badge lies there.")

    def places_in_line(self, requests: Sequence[AccessRequest], *, now: datetime) -> dict[str, PlaceInLine]:
        return {one.request_id: PlaceInLine(before=0, lapses_at=one.expires_at, expected=None) for one in requests}

    def grant(self, *, request: AccessRequest, guards: Sequence[Guard], actor: Actor, clock: Clock) -> Proof | Waiting:
        now = clock.now()
        if any(door == request.target["door"] for door, _ in BADGES - {_badge(request)}):
            return Waiting("no_badge_free", "Somebody has the badge.", now + timedelta(minutes=1), is_error=False, is_queued=True)
        proof = super().grant(request=request, guards=guards, actor=actor, clock=clock)
        assert isinstance(proof, Proof)
        return replace(proof, ends_at=whole_second(proof.proved_at) + timedelta(seconds=request.duration_seconds))


def _badge(request: AccessRequest) -> tuple[str, str]:
    return str(request.target["door"]), request.request_id
