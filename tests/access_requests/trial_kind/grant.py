"""Granting: the badge of a person is in a door's list. The list is the outside world of this kind."""

from __future__ import annotations

from collections.abc import Sequence

from accessportal.access_requests.kind import Grant
from accessportal.access_requests.states import AccessRequest
from accessportal.kernel.actors import Actor
from accessportal.kernel.clock import Clock
from accessportal.kernel.proofs import Proof, Waiting
from accessportal.store.transactions import Guard, transact

BADGES: set[tuple[str, str]] = set()
"""Door and request."""


class DoorGrant(Grant):
    def grant(self, *, request: AccessRequest, guards: Sequence[Guard], actor: Actor, clock: Clock) -> Proof | Waiting:
        now = clock.now()
        transact(list(guards))
        BADGES.add(_badge(request))
        return Proof(_badge(request) in BADGES, f"badge-{request.target['door']}", "LISTED", now, now)

    def revoke(self, *, request: AccessRequest, actor: Actor, clock: Clock) -> Proof | Waiting:
        BADGES.discard(_badge(request))
        return Proof(_badge(request) in BADGES, "", "", clock.now(), clock.now())


def _badge(request: AccessRequest) -> tuple[str, str]:
    return str(request.target["door"]), request.request_id
