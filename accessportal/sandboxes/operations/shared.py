"""What the verbs share: loading, ending an allocation, and trying again after a lost race."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from datetime import datetime
from typing import Any, TypeVar

from accessportal.audit.states import Draft
from accessportal.kernel.clock import whole_second
from accessportal.kernel.errors import Conflict, NoAnswer
from accessportal.kernel.runs import Failure
from accessportal.sandboxes.states import Due, NoSuchSandbox, Sandbox, Status, Unreadable
from accessportal.sandboxes.store import free_list, rows
from accessportal.store import transactions
from accessportal.store.transactions import Step

T = TypeVar("T")
SCOPE = "sandboxes"


def load(sandbox_id: str) -> Sandbox:
    """:raises NotFound: when there is no such sandbox in the pool."""
    sandbox = rows.get(sandbox_id)
    if sandbox is None:
        raise NoSuchSandbox
    return sandbox


def check_fence(sandbox: Sandbox, fence: int | None) -> None:
    """Require that it is still at the hand-over that an operator meant (``sandbox_moved_on``); without ``fence`` it is whichever it is."""
    if fence in {None, sandbox.fence_held}:
        return
    holder = f"lent to {sandbox.track}" if sandbox.status is Status.ALLOCATED else f"{sandbox.status}"
    words = f"Hand-over {fence} of {sandbox.name} was meant, but it is at hand-over {sandbox.fence_held} now, {holder}."
    raise Conflict(f"{words} Nothing was done: look at it again.", code="sandbox_moved_on", present=sandbox)


def until_written(attempt: Callable[[], T]) -> T:
    """The result of ``attempt``, which reads, decides and writes; again from the start whenever it was overtaken."""
    words = "Too many others are changing this sandbox right now. Try again."
    return transactions.until_written(attempt, contended=NoAnswer(words, code="sandbox_contended"))


def told(action: str, sandbox: Sandbox, **data: Any) -> Draft:
    """The event of a change that leaves ``sandbox``; always with its fence."""
    return Draft(action, sandbox.track or sandbox.sandbox_id, {"fence": sandbox.fence, **data}, scope=SCOPE)


def ended(sandbox: Sandbox, *, clean_at: datetime, now: datetime) -> Sandbox:
    """The allocated sandbox as it is after the end of its allocation: to be cleaned at ``clean_at``."""
    return dataclasses.replace(
        sandbox,
        status=Status.PENDING_DELETION,
        deletion_requested_at=whole_second(now),
        deletion_retry_count=0,
        due=Due.CLEAN,
        due_at=clean_at,
        delete_sent_at=None,
        delete_generation="",
        clean_error="",
        missing_since=None,
        claims={},
    )


def released_by(sandbox: Sandbox, track: str, *, now: datetime) -> Sandbox:
    """It tells from now on that ``track`` gave it back, so that a repeated release is answered as the first."""
    return dataclasses.replace(sandbox, last_released_by=track, last_released_at=whole_second(now), last_released_fence=sandbox.fence)


def held_anew(sandbox: Sandbox, track: str) -> Sandbox:
    """It tells no longer that ``track``, its next holder, gave it back: that was another hand-over, of which the events tell."""
    if sandbox.last_released_by != track:
        return sandbox
    return dataclasses.replace(sandbox, last_released_by="", last_released_at=None, last_released_fence=0)


def unheld(sandbox: Sandbox, status: Status) -> Sandbox:
    """The sandbox in ``status``, without a holder and with nothing due. What its last release was stays known."""
    return dataclasses.replace(
        sandbox,
        status=status,
        fence=rows.continued(sandbox).fence,
        allocated_at=None,
        track="",
        key="",
        expires_at=None,
        grace_ends_at=None,
        lent_at=None,
        due=None,
        due_at=None,
        deletion_requested_at=None,
        deletion_retry_count=0,
        delete_sent_at=None,
        delete_generation="",
        clean_error="",
        held_by="",
        held_until=None,
        missing_since=None,
        claims={},
    )


def leaving_free_list(sandbox: Sandbox) -> Step | None:
    """The step that takes it off the free list; ``None`` when it is not there."""
    return free_list.take(sandbox.sandbox_id) if free_list.is_listed(sandbox.sandbox_id) else None


def unreadable_failure(seen: Unreadable) -> Failure:
    """How a run reports a row that it had to pass over."""
    return Failure(seen.sandbox_id, "the row can't be read: another program, or a newer version of the portal, has written it")
