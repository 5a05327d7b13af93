"""What the verbs share: loading, catching up with other programs, ending an allocation, and trying again after a lost race."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from datetime import datetime
from typing import Any, TypeVar

from accessportal.audit.states import Draft
from accessportal.kernel.actors import Actor
from accessportal.kernel.clock import to_epoch, whole_second
from accessportal.kernel.errors import Conflict, Unavailable
from accessportal.kernel.runs import Failure
from accessportal.sandboxes import policy, store
from accessportal.sandboxes.config import current
from accessportal.sandboxes.policy import Mending
from accessportal.sandboxes.states import Due, KeyRecord, NoSuchSandbox, Sandbox, Status, Unreadable
from accessportal.store.transactions import Step

T = TypeVar("T")
_MAX_TRIES = 25
SCOPE = "sandboxes"


def load(sandbox_id: str) -> Sandbox:
    """:raises NotFound: when there is no such sandbox in the pool."""
    sandbox = store.get(sandbox_id)
    if sandbox is None:
        raise NoSuchSandbox
    return sandbox


def check_fence(sandbox: Sandbox, fence: int | None) -> None:
    """It is still at the hand-over that an operator meant; without ``fence`` it is whichever it is.

    :raises Conflict: ``sandbox_moved_on``, when it is at another one.
    """
    if fence in {None, sandbox.fence_held}:
        return
    holder = f"lent to {sandbox.track}" if sandbox.status is Status.ALLOCATED else f"{sandbox.status}"
    words = f"Hand-over {fence} of {sandbox.name} was meant, but it is at hand-over {sandbox.fence_held} now, {holder}."
    raise Conflict(f"{words} Nothing was done: look at it again.", code="sandbox_moved_on", present=sandbox)


def until_written(attempt: Callable[[], T]) -> T:
    """The result of ``attempt``, which reads, decides and writes; again from the start whenever it was overtaken."""
    for _ in range(_MAX_TRIES):
        try:
            return attempt()
        except (store.Overtaken, store.KeyOvertaken):
            continue
    raise Unavailable("Too many others are changing this sandbox right now. Try again.", code="sandbox_contended")


def told(action: str, sandbox: Sandbox, **data: Any) -> Draft:
    """The event of a change that leaves ``sandbox``; always with its fence."""
    return Draft(action, sandbox.track or sandbox.sandbox_id, {"fence": sandbox.fence, **data}, scope=SCOPE)


def mended(sandbox: Sandbox, *, actor: Actor, now: datetime) -> Sandbox:
    """The sandbox with our own notes caught up with what another program did to its row.

    :raises Overtaken: when it changed meanwhile.
    """
    match policy.mending_of(sandbox):
        case Mending.ADOPT:
            return _adopt(sandbox, actor=actor, now=now)
        case Mending.TAKE_IN:
            return _take_in(sandbox, actor=actor, now=now)
        case Mending.LIST_AS_FREE:
            return _list_as_free(sandbox, actor=actor, now=now)
    return sandbox


def ended(sandbox: Sandbox, *, now: datetime) -> Sandbox:
    """The allocated sandbox as it is after the end of its allocation: to be cleaned at once."""
    return dataclasses.replace(
        sandbox,
        status=Status.PENDING_DELETION,
        deletion_requested_at=whole_second(now),
        deletion_retry_count=0,
        due=Due.CLEAN,
        due_at=now,
        delete_sent_at=None,
        delete_generation="",
        clean_error="",
        missing_since=None,
        claims=(),
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
        fence=store.continued(sandbox).fence,
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
        claims=(),
    )


def closing_key(sandbox: Sandbox) -> Step | None:
    """The step that closes the key of the sandbox's present allocation; ``None`` when no open key stands for it."""
    record = store.get_key(sandbox.key) if sandbox.key else None
    if record is None or not record.is_open or record.sandbox_id != sandbox.sandbox_id or record.fence != sandbox.fence:
        return None
    return store.close_key(record)


def leaving_free_list(sandbox: Sandbox) -> Step | None:
    """The step that takes it off the free list; ``None`` when it is not there."""
    return store.take_free(sandbox.sandbox_id) if store.free_entry(sandbox.sandbox_id) else None


def unreadable_failure(seen: Unreadable) -> Failure:
    """How a run reports a row that it had to pass over."""
    return Failure(seen.sandbox_id, "the row can't be read: another program, or a newer version of the portal, has written it")


def _adopt(sandbox: Sandbox, *, actor: Actor, now: datetime) -> Sandbox:
    after = policy.as_lent(held_anew(sandbox, sandbox.track), grace_seconds=current().grace_seconds)
    after = dataclasses.replace(
        after,
        fence=store.continued(sandbox).fence_held,
        lent_at=sandbox.allocated_at,
        due=Due.EXPIRE,
        due_at=after.grace_ends_at,
        claims=() if sandbox.is_foreign else sandbox.claims,
        generation="" if sandbox.is_foreign else sandbox.generation,
    )
    key_step = None
    record = store.get_key(sandbox.key) if sandbox.key else None
    if sandbox.key and not _may_stand(record):
        key_step = store.open_key(record, key=sandbox.key, request_hash="", sandbox=after)
    draft = told("sandbox.adopted", after, track=after.track, key=after.key, expires_at=_epoch(after.expires_at), status=after.status.value)
    free_step = leaving_free_list(sandbox)
    return store.change(sandbox, after, draft=draft, actor=actor, now=now, key_step=key_step, free_step=free_step)


def _may_stand(record: KeyRecord | None) -> bool:
    """Whether the key stands for a sandbox, or for one whose row can't be read, so that nobody knows."""
    if record is None or not record.is_open:
        return False
    found = store.look(record.sandbox_id)
    return isinstance(found, Unreadable) or policy.stands_for(record, found)


def _take_in(sandbox: Sandbox, *, actor: Actor, now: datetime) -> Sandbox:
    """Another program marked it for deletion: with an allocation of ours, or with one of its own that we never saw."""
    key_step = None if sandbox.is_foreign else closing_key(sandbox)
    after = dataclasses.replace(
        sandbox,
        fence=store.continued(sandbox).fence_held,
        lent_at=sandbox.allocated_at,
        due=Due.CLEAN,
        due_at=now,
        claims=(),
    )
    after = released_by(after, sandbox.track, now=sandbox.deletion_requested_at or now)
    draft = told("sandbox.released", after, track=after.track, is_outside=True, status=after.status.value)
    free_step = leaving_free_list(sandbox)
    return store.change(sandbox, after, draft=draft, actor=actor, now=now, key_step=key_step, free_step=free_step)


def _list_as_free(sandbox: Sandbox, *, actor: Actor, now: datetime) -> Sandbox:
    after = dataclasses.replace(unheld(sandbox, Status.AVAILABLE), generation="")
    draft = told("sandbox.adopted", after, track="", status=after.status.value)
    return store.change(sandbox, after, draft=draft, actor=actor, now=now)


def _epoch(moment: datetime | None) -> int:
    return 0 if moment is None else to_epoch(moment)
