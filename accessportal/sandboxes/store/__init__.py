"""The only user of the SandboxPool item class. Every change of a sandbox is one transaction with its audit event."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from datetime import datetime

from pynamodb.expressions.condition import Condition

from accessportal.audit import queries as audit
from accessportal.audit.operations import prepare_event
from accessportal.audit.states import AuditEvent, Draft
from accessportal.kernel.actors import Actor
from accessportal.kernel.errors import Unavailable
from accessportal.kernel.moments import furthest
from accessportal.sandboxes import models, policy
from accessportal.sandboxes.models import SandboxItem
from accessportal.sandboxes.states import ALLOWED_MOVES, KeyRecord, Sandbox, Status, Unreadable, entity_of
from accessportal.sandboxes.store.converting import (
    ATTRIBUTES,
    ITEM_NAMES,
    FreeEntry,
    as_read,
    differences,
    free_entry_of,
    precise,
    record_of,
    row_change,
    row_key,
    stored,
)
from accessportal.sandboxes.store.errors import Exists, FurtherFailed, KeyOvertaken, Overtaken
from accessportal.sandboxes.store.holders import get_holder, hold_for, none_told_at, note_none
from accessportal.sandboxes.store.pages import every_row, free_shards, page_by_status, page_due, page_free, page_of_key, page_of_track
from accessportal.sandboxes.store.pool import (
    add_count,
    forget_counts,
    keep_counts,
    keep_sync,
    last_counts,
    last_sync,
    page_counts,
    pool_head,
    returns,
)
from accessportal.sandboxes.store.runs import begin_run, end_run, get_run, insert_run, last_run, page_runs, remove_run
from accessportal.sandboxes.store.steps import becoming_free, close_key, open_key, take_free
from accessportal.store.reading import get_item
from accessportal.store.restores import first_fence
from accessportal.store.transactions import ConditionFailed, Insert, Remove, Step, transact, update_one

__all__ = [
    "Exists",
    "FreeEntry",
    "FurtherFailed",
    "KeyOvertaken",
    "Overtaken",
    "add_count",
    "begin_run",
    "change",
    "close_key",
    "continued",
    "drop_free",
    "end_run",
    "every_row",
    "forget_counts",
    "free_entry",
    "free_shards",
    "get",
    "get_holder",
    "get_key",
    "get_run",
    "hold_for",
    "insert",
    "insert_run",
    "keep_counts",
    "keep_sync",
    "last_counts",
    "last_event",
    "last_run",
    "last_sync",
    "lease",
    "look",
    "none_told_at",
    "note",
    "note_none",
    "open_key",
    "page_by_status",
    "page_counts",
    "page_due",
    "page_free",
    "page_of_key",
    "page_of_track",
    "page_runs",
    "pool_head",
    "remove",
    "remove_run",
    "returns",
    "take_free",
]


def get(sandbox_id: str) -> Sandbox | None:
    """Strongly read.

    :raises Unavailable: also for a row that is not as the contract says; it is named.
    """
    item = get_item(SandboxItem, *models.sandbox_key(sandbox_id))
    if item is None:
        return None
    try:
        return record_of(item)
    except ValueError as error:
        raise Unavailable(
            f"The sandbox {sandbox_id} can't be read ({error}). Somebody else has changed it; mend it by hand.", code="item_unreadable"
        ) from error


def look(sandbox_id: str) -> Sandbox | Unreadable | None:
    """As :func:`get`, for those who must go on past a row that can't be read."""
    try:
        return get(sandbox_id)
    except Unavailable as error:
        if error.code != "item_unreadable":
            raise
        return Unreadable(sandbox_id, external_id="")


def get_key(key: str) -> KeyRecord | None:
    """Strongly read: the truth about repeats."""
    item = get_item(SandboxItem, *models.idempotency_item_key(key))
    if item is None:
        return None
    return KeyRecord(
        key=key,
        request_hash=item.request_hash or "",
        sandbox_id=item.sandbox_id or "",
        fence=int(item.fence or 0),
        track=item.track or "",
        is_open=item.state == "open",
        version=int(item.version or 0),
    )


def free_entry(sandbox_id: str) -> FreeEntry | None:
    """Its line in the free list, strongly read."""
    item = get_item(SandboxItem, *models.free_key(sandbox_id))
    return None if item is None else free_entry_of(item)


def last_event(sandbox_id: str) -> AuditEvent | None:
    """The end of a sandbox's chain, whether or not its row exists; it has the fence, as every event does."""
    return next(iter(audit.history(entity_of(sandbox_id), limit=1).items), None)


def continued(sandbox: Sandbox) -> Sandbox:
    """The sandbox with the fence of its last hand-over: a row that another program made anew lacks it, and its chain tells; what the
    tables have lost, the epoch of their restore.

    For what is written next, not for what is expected of the row.
    """
    if sandbox.version:
        return sandbox
    last = last_event(sandbox.sandbox_id)
    return dataclasses.replace(sandbox, fence=max(sandbox.fence, int(last.data["fence"]) if last else 0, first_fence()))


def insert(sandbox: Sandbox, *, draft: Draft, actor: Actor, now: datetime) -> Sandbox:
    """A new row and its event; free at once if it is available. A chain from an earlier life is continued.

    :raises Exists: when the id is taken.
    :raises Overtaken: when somebody else writes its chain at the same moment.
    """
    event = prepare_event(draft, entity=sandbox.entity, sequence=sandbox.version + 1, prev_hash=sandbox.audit_head, actor=actor, now=now)
    made = dataclasses.replace(sandbox, version=sandbox.version + 1, audit_head=event.head)
    values = {ITEM_NAMES.get(name, name): stored(name, getattr(made, name)) for name in ATTRIBUTES}
    item = SandboxItem(*models.sandbox_key(made.sandbox_id), sandbox_id=made.sandbox_id, **values)
    row = Insert(item)
    try:
        transact([row, event.step, *becoming_free(made)])
    except ConditionFailed as error:
        raise (Exists if error.step is row else Overtaken) from error
    return made


def change(
    before: Sandbox,
    after: Sandbox,
    *,
    draft: Draft,
    actor: Actor,
    now: datetime,
    key_step: Step | None = None,
    free_step: Step | None = None,
    further: Sequence[Step] = (),
) -> Sandbox:
    """Write what differs between ``before``, as it was read, and ``after``, with the event. A sandbox that becomes available
    is put into the free list in the same transaction. ``further`` are steps and guards of the caller's.

    :raises FurtherFailed: when one of ``further`` did not hold.
    :raises KeyOvertaken: when ``key_step`` did not hold.
    :raises Overtaken: when somebody else changed the sandbox first.
    """
    if before.status is not after.status and after.status not in ALLOWED_MOVES[before.status]:
        raise ValueError(f"a sandbox does not go from {before.status} to {after.status}")
    sequence, prev_hash = before.version, before.audit_head
    if not before.version and (last := last_event(before.sandbox_id)) is not None:
        # Another program made the row anew of one that had left the pool.
        sequence, prev_hash = last.sequence, last.hash
    event = prepare_event(draft, entity=before.entity, sequence=sequence + 1, prev_hash=prev_hash, actor=actor, now=now)
    after = dataclasses.replace(after, updated_at=now, version=sequence + 1, audit_head=event.head)
    becomes_free = after.status is Status.AVAILABLE and (before.status is not Status.AVAILABLE or policy.is_unlisted(before))
    row = row_change(before, differences(before, after), as_read(before))
    steps = [row, event.step, *(becoming_free(after) if becomes_free else [])]
    if free_step is not None:
        steps.append(free_step)
    try:
        transact([*further, *(() if key_step is None else (key_step,)), *steps])
    except ConditionFailed as error:
        if any(error.step is one for one in further):
            raise FurtherFailed(error.step) from error
        raise (KeyOvertaken if error.step is key_step else Overtaken) from error
    return after


def remove(sandbox: Sandbox, *, draft: Draft, actor: Actor, now: datetime) -> None:
    """The row goes, if it is as it was read and held by the same cleaner; its chain stays and gets a last event.

    :raises Overtaken: when it is not.
    """
    event = prepare_event(draft, entity=sandbox.entity, sequence=sandbox.version + 1, prev_hash=sandbox.audit_head, actor=actor, now=now)
    pk, sk = row_key(sandbox)
    try:
        transact([Remove(SandboxItem, pk, as_read(sandbox), range_key=sk), event.step])
    except ConditionFailed as error:
        raise Overtaken from error


def drop_free(entry: FreeEntry) -> None:
    """A line whose sandbox is not free goes, unless it was written anew meanwhile."""
    pk, sk = models.free_key(entry.sandbox_id)
    try:
        transact([Remove(SandboxItem, pk, SandboxItem.version == entry.version, range_key=sk)])
    except ConditionFailed:
        return


def lease(sandbox: Sandbox, *, holder: str, until: datetime, now: datetime) -> Sandbox | None:
    """The sandbox for one cleaner alone until ``until``; ``None`` while another has it, or when it is not as it was read.

    The due time moves with it: a cleaner that dies is followed by another when its hold is over.
    """
    held = dataclasses.replace(sandbox, held_by=holder, held_until=until, due_at=until)
    held_until, beyond = SandboxItem.held_until, furthest(now, longest=until - now)
    free = held_until.does_not_exist() | (held_until <= precise(now)) | (held_until > precise(beyond))
    return held if _note(sandbox, held, free) else None


def note(before: Sandbox, after: Sandbox) -> None:
    """Write what differs, in a row that is as it was read and held by the same cleaner.

    :raises Overtaken: when it is not.
    """
    if not _note(before, after):
        raise Overtaken


def _note(before: Sandbox, after: Sandbox, further: Condition | None = None) -> bool:
    actions = differences(before, after)
    if not actions:
        return True
    condition = as_read(before) if further is None else as_read(before) & further
    try:
        update_one(row_change(before, actions, condition))
    except ConditionFailed:
        return False
    return True
