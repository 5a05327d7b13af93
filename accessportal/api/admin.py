"""Care of the pool by programs of scope ``admin``: lists, counts, and single sandboxes."""

from __future__ import annotations

from typing import Annotated

from django.http import HttpRequest
from ninja import Query, Router

from accessportal.api.auth import BearerToken, client_of
from accessportal.api.documenting import errors
from accessportal.api.schemas import (
    LastSync,
    PageCursor,
    PageLimit,
    PoolStats,
    Quarantine,
    SandboxId,
    SandboxPage,
    SandboxState,
    Unreadable,
)
from accessportal.kernel.clock import SystemClock, epoch_of, to_epoch
from accessportal.sandboxes import operations, queries
from accessportal.sandboxes.states import Sandbox, Status
from accessportal.tokens.states import Scope

router = Router(auth=BearerToken(Scope.ADMIN), tags=["Admin"])


@router.get(
    "sandboxes",
    response={200: SandboxPage, **errors()},
    operation_id="list_sandboxes",
    summary="List the sandboxes in a status",
)
def list_sandboxes(
    request: HttpRequest,
    status: Annotated[Status, Query(description="The status to list.")],
    limit: PageLimit = 50,
    cursor: PageCursor = "",
) -> SandboxPage:
    """Longest lent first. A cursor is good for the list that it came from alone (`INVALID_CURSOR`)."""
    page = queries.list_by_status(status=status, cursor=cursor or None, limit=limit)
    return SandboxPage(
        items=[SandboxState.of(one) for one in page.items if isinstance(one, Sandbox)],
        unreadable=[
            Unreadable(sandbox_id=one.sandbox_id, external_id=one.external_id) for one in page.items if not isinstance(one, Sandbox)
        ],
        next_cursor=page.next_cursor,
    )


@router.get("stats", response={200: PoolStats, **errors()}, operation_id="get_stats", summary="Count the pool")
def get_stats(request: HttpRequest) -> PoolStats:
    """Counts come from a job, every few minutes; `counted_at` says when."""
    stats, sync = queries.stats(), queries.last_sync()
    next_return_at = queries.next_return_at(now=SystemClock().now())
    return PoolStats(
        counted_at=None if stats is None else to_epoch(stats.counted_at),
        counts=None if stats is None else dict(stats.counts),
        total=None if stats is None else stats.total,
        last_sync=None if sync is None else LastSync.of(sync),
        next_return_at=epoch_of(next_return_at),
    )


@router.post(
    "sandboxes/{sandbox_id}/restore",
    response={200: SandboxState, **errors(404, 409)},
    operation_id="restore_sandbox",
    summary="Bring a stale or quarantined sandbox back",
)
def restore_sandbox(request: HttpRequest, sandbox_id: SandboxId) -> SandboxState:
    """It is cleaned once more and then free. `CONFLICT`: it is neither stale nor in quarantine. No body is read."""
    return SandboxState.of(operations.restore(sandbox_id=sandbox_id, actor=client_of(request).actor, now=SystemClock().now()))


@router.post(
    "sandboxes/{sandbox_id}/quarantine",
    response={200: SandboxState, **errors(404, 409, 413)},
    operation_id="quarantine_sandbox",
    summary="Keep a sandbox out of use",
)
def quarantine_sandbox(request: HttpRequest, sandbox_id: SandboxId, body: Quarantine) -> SandboxState:
    """A holder loses it at once. `CONFLICT`: it is in quarantine already."""
    return SandboxState.of(
        operations.quarantine(sandbox_id=sandbox_id, reason=body.reason, actor=client_of(request).actor, now=SystemClock().now())
    )
