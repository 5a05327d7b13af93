"""What lab tracks do: take a sandbox, look at it, give it back."""

from __future__ import annotations

from collections.abc import Sequence

from django.http import HttpRequest, HttpResponse
from ninja import Router
from ninja.responses import Status

from accessportal.api.auth import BearerToken, client_of
from accessportal.api.documenting import errors
from accessportal.api.schemas import (
    Allocation,
    Fence,
    IdempotencyKey,
    NamePrefix,
    OptionalTrackId,
    Release,
    SandboxId,
    SandboxState,
    TrackId,
)
from accessportal.kernel.actors import Actor
from accessportal.kernel.clock import SystemClock
from accessportal.kernel.errors import InvalidRequest, NotAllowed
from accessportal.sandboxes import operations, queries
from accessportal.sandboxes.states import PEOPLES_TRACKS
from accessportal.store.reading import ItemKey
from accessportal.tokens.states import Scope

router = Router(auth=BearerToken(Scope.TRACK), tags=["Tracks"])


def _read_for_take(request: HttpRequest, actor: Actor) -> Sequence[ItemKey]:
    track = request.headers.get("X-Track-ID", "")
    return queries.read_for_take(key=request.headers.get("Idempotency-Key", "") or track, track=track, actor=actor)


def _read_for_release(request: HttpRequest, _actor: Actor) -> Sequence[ItemKey]:
    assert request.resolver_match is not None
    return queries.read_for_release(sandbox_id=request.resolver_match.kwargs["sandbox_id"])


@router.post(
    "allocate",
    auth=BearerToken(Scope.TRACK, beside=_read_for_take),
    response={201: Allocation, 200: Allocation, **errors(409)},
    operation_id="allocate",
    summary="Take a sandbox",
)
def allocate(
    request: HttpRequest, response: HttpResponse, track_id: TrackId, key: IdempotencyKey = "", name_prefix: NamePrefix = ""
) -> Status[Allocation]:
    """A free sandbox is lent to the track until `expires_at`: 201. The same key again, while that allocation stands: 200 with the
    same body. After it was given back, or its `expires_at` has come, the key gets a new allocation; the old one is given back by
    that where it was not yet. No body is read.

    `IDEMPOTENCY_MISMATCH`: the key stands for another prefix. `TOO_MANY_HELD`: this token holds as many as it may.
    `NO_SANDBOXES_AVAILABLE`: none is free; `retry_after` is when the next one is expected back. While people wait in line, what
    becomes free goes to them first, and the message says so and how many wait (or, by a setting, that programs may be first).
    """
    client = client_of(request)
    client.require_track(track_id)
    taken = operations.take(
        key=key or track_id,
        track=track_id,
        name_prefix=name_prefix,
        most_held=client.token.most_held,
        ahead=client.ahead,
        actor=client.actor,
        now=SystemClock().now(),
    )
    response.headers["Location"] = f"/v1/sandboxes/{taken.sandbox.sandbox_id}"
    return Status(200 if taken.is_repeat else 201, Allocation.of(taken.sandbox))


@router.post(
    "sandboxes/{sandbox_id}/mark-for-deletion",
    auth=BearerToken(Scope.TRACK, beside=_read_for_release),
    response={200: Release, **errors(403, 404)},
    operation_id="mark_for_deletion",
    summary="Give a sandbox back",
)
def mark_for_deletion(request: HttpRequest, sandbox_id: SandboxId, track_id: TrackId, fence: Fence = 0) -> Release:
    """The allocation ends, its key is closed, and the sandbox is cleaned before anybody else gets it. Repeated, the answer is
    the same. Works until the end of grace, some minutes after `expires_at`; then `ALLOCATION_EXPIRED`. No body is read.
    """
    client = client_of(request)
    client.require_track(track_id)
    released = operations.release(
        sandbox_id=sandbox_id, track=track_id, fence=fence or None, ahead=client.ahead, actor=client.actor, now=SystemClock().now()
    )
    return Release.of(released)


@router.get(
    "sandboxes/{sandbox_id}",
    response={200: SandboxState, **errors(403, 404)},
    operation_id="get_sandbox",
    summary="Look at a sandbox",
)
def get_sandbox(request: HttpRequest, sandbox_id: SandboxId, track_id: OptionalTrackId = "") -> SandboxState:
    """For the track that holds it, and for tokens of scope `admin`."""
    if client_of(request).is_admin:
        return SandboxState.of(queries.get(sandbox_id=sandbox_id))
    if not track_id:
        raise InvalidRequest("The header X-Track-ID is missing.", code="header_missing", field="X-Track-ID")
    client_of(request).require_track(track_id)
    sandbox = queries.get(sandbox_id=sandbox_id)
    # What a person holds is looked at in the portal.
    if sandbox.track != track_id or track_id.startswith(PEOPLES_TRACKS):
        raise NotAllowed("This sandbox is not lent to this track.", code="NOT_SANDBOX_OWNER")
    return SandboxState.of(sandbox)
