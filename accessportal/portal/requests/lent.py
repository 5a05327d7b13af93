"""What requests have of a pool: the very thing, or a place in its line."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime

from accessportal.access_requests import queries
from accessportal.access_requests.kinds.lending import chain_of
from accessportal.access_requests.kinds.sandbox.target import key_in_pool
from accessportal.access_requests.states import AccessRequest, PlaceInLine, Status
from accessportal.leases import queries as leases
from accessportal.leases.states import Lease, LeaseState
from accessportal.sandboxes import queries as sandboxes
from accessportal.sandboxes.states import Sandbox
from accessportal.web.presenting import mark_of

_LENT = frozenset({"sandbox", "account_lease"})


@dataclass(frozen=True, slots=True)
class Lent:
    """What one request has, of what is lent; nothing of every other kind, and when it was taken away."""

    sandbox: Sandbox | None = None
    lease: Lease | None = None
    place: PlaceInLine | None = None

    @property
    def title(self) -> str:
        """What it is called, where the request does not know that best."""
        return f"Sandbox {self.sandbox.name}" if self.sandbox is not None else ""

    @property
    def is_held(self) -> bool:
        return self.sandbox is not None or self.lease is not None

    @property
    def is_frozen(self) -> bool:
        """The access is off, or goes off."""
        return self.lease is not None and LeaseState.FROZEN in (self.lease.state, self.lease.wanted)

    @property
    def mark(self) -> str:
        """Changes with what a page shows of it: it can be taken away, and move on in the line, without a change of the request."""
        if self.sandbox is not None:
            return f".{self.sandbox.fence}.{self.sandbox.version}"
        if self.lease is not None:
            return f".{self.lease.version}"
        if self.place is not None:
            expected = "".join(f"-{at:%d%H%M}" for at in self.place.expected or ())
            return f".{self.place.place}{expected}"
        return ""


def lent_to(request: AccessRequest, now: datetime) -> Lent:
    return lent_to_all([request], now)[request.request_id]


def is_gone(request: AccessRequest, lent: Lent) -> bool:
    """Whether what was lent to a request that is granted is not there any more."""
    return request.kind in _LENT and request.is_granted and not lent.is_held


def without_senseless(verbs: frozenset[str], request: AccessRequest, lent: Lent) -> frozenset[str]:
    """``verbs`` without those that make no sense: what is gone, or frozen, can't be extended."""
    return verbs - {"extend"} if request.kind in _LENT and (lent.is_frozen or not lent.is_held) else verbs


def mark_with(lent: Lent, request: AccessRequest, now: datetime) -> str:
    """``presenting.mark_of``, for a page that also shows what is lent."""
    return f"{mark_of(request, now)}{lent.mark}"


def lent_to_all(requests: Iterable[AccessRequest], now: datetime) -> dict[str, Lent]:
    """What each of the requests has, by its id: read together and once, for the mark of a page and for its rows."""
    told = {one.request_id: one for one in requests}
    holding = {request_id: one for request_id, one in told.items() if one.status is Status.ACTIVE and one.granted_at is not None}
    keys = {request_id: key_in_pool(one) for request_id, one in holding.items() if one.kind == "sandbox"}
    lease_ids = {request_id: chain_of(one) for request_id, one in holding.items() if one.kind == "account_lease"}
    found, lent = sandboxes.find_by_keys(keys=keys.values()), leases.find_leases(lease_ids=lease_ids.values())
    places = queries.places_in_line(requests=told.values(), now=now)
    return {
        request_id: Lent(
            sandbox=found.get(keys.get(request_id, "")),
            lease=lent.get(lease_ids.get(request_id, "")),
            place=places.get(request_id),
        )
        for request_id in told
    }


def mark_of_all(requests: Iterable[AccessRequest], lent: Mapping[str, Lent], now: datetime) -> str:
    """Changes when anything changes that a list of the requests shows."""
    told = "|".join(f"{one.request_id}={mark_with(lent[one.request_id], one, now)}" for one in requests)
    return hashlib.sha256(told.encode()).hexdigest()[:16]
