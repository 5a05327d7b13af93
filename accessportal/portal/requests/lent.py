"""What a request for a sandbox holds, and which sandboxes somebody may ask for."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping
from datetime import datetime

from accessportal.access_requests.kinds.sandbox.target import key_in_pool
from accessportal.access_requests.states import AccessRequest, Status
from accessportal.sandboxes import queries as sandboxes
from accessportal.sandboxes.states import Sandbox
from accessportal.web.presenting import mark_of


def sandbox_of(request: AccessRequest) -> Sandbox | None:
    """The sandbox that an active request holds; ``None`` for every other kind, before it has one, and when it was taken away."""
    return held_by([request])[request.request_id]


def without_senseless(verbs: frozenset[str], request: AccessRequest, sandbox: Sandbox | None) -> frozenset[str]:
    """``verbs`` without those that make no sense: a sandbox that is gone can't be extended."""
    return verbs - {"extend"} if request.kind == "sandbox" and sandbox is None else verbs


def mark_with(sandbox: Sandbox | None, request: AccessRequest, now: datetime) -> str:
    """``presenting.mark_of``, for a page that also shows the sandbox: it can be taken away without a change of the request."""
    mark = mark_of(request, now)
    return f"{mark}.{sandbox.fence}.{sandbox.version}" if sandbox is not None else mark


def held_by(requests: Iterable[AccessRequest]) -> dict[str, Sandbox | None]:
    """What each of the requests holds, by its id: read together and once, for the mark of a page and for its rows."""
    told = {one.request_id: key_in_pool(one) if _may_hold(one) else "" for one in requests}
    found = sandboxes.find_by_keys(keys=filter(None, told.values()))
    return {request_id: found.get(key) for request_id, key in told.items()}


def _may_hold(request: AccessRequest) -> bool:
    return request.kind == "sandbox" and request.status is Status.ACTIVE and request.granted_at is not None


def mark_of_all(requests: Iterable[AccessRequest], held: Mapping[str, Sandbox | None], now: datetime) -> str:
    """Changes when anything changes that a list of the requests shows."""
    told = "|".join(f"{one.request_id}={mark_with(held[one.request_id], one, now)}" for one in requests)
    return hashlib.sha256(told.encode()).hexdigest()[:16]
