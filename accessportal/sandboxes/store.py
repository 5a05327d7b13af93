"""The only user of the SandboxPool item class. Every change of a sandbox is one transaction with its audit event."""

from __future__ import annotations

import contextlib
import dataclasses
import json
import math
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from pynamodb.attributes import Attribute
from pynamodb.expressions.condition import Condition
from pynamodb.expressions.update import Action

from accessportal.audit import queries as audit
from accessportal.audit.operations import prepare_event
from accessportal.audit.states import Draft
from accessportal.kernel.actors import Actor
from accessportal.kernel.clock import from_epoch, to_epoch
from accessportal.kernel.errors import Unavailable
from accessportal.kernel.pages import Page
from accessportal.sandboxes import models
from accessportal.sandboxes.models import SandboxItem
from accessportal.sandboxes.states import ALLOWED_MOVES, POOL_ENTITY, Due, KeyRecord, LastSync, Sandbox, Stats, Status, entity_of
from accessportal.store.reading import RawItem, get_item, query_page
from accessportal.store.transactions import Change, ConditionFailed, Insert, Remove, Step, Upsert, transact, update_one


class Overtaken(Exception):
    """Another writer changed the sandbox since it was read. Read it again and decide again."""


class KeyOvertaken(Exception):
    """Another writer changed the idempotency key since it was read. Read it again and decide again."""


class Exists(Exception):
    """There is a sandbox with this id already."""


@dataclass(frozen=True, slots=True)
class FreeEntry:
    """One line of the free list. ``version`` is the sandbox's at the moment of its return."""

    sandbox_id: str
    name: str
    version: int


@dataclass(frozen=True, slots=True)
class Unreadable:
    """Stands for a row that is no sandbox as this code knows them: somebody else wrote it."""

    sandbox_id: str


# Reading one


def get(sandbox_id: str) -> Sandbox | None:
    """Strongly read.

    :raises Unavailable: also for a row that is not as the contract says; it is named.
    """
    item = get_item(SandboxItem, *models.sandbox_key(sandbox_id))
    if item is None:
        return None
    try:
        return _record(item)
    except (TypeError, ValueError) as error:
        raise Unavailable(
            f"The sandbox {sandbox_id} can't be read ({error}). Somebody else has changed it; mend it by hand.", code="item_unreadable"
        ) from error


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


def returns() -> tuple[int, ...]:
    """How often a sandbox has become free in each shard of the free list: all of one moment, strongly read."""
    item = get_item(SandboxItem, *models.pool_key())
    return tuple(0 if item is None else int(getattr(item, f"returns_{shard}") or 0) for shard in free_shards())


def free_entry(sandbox_id: str) -> FreeEntry | None:
    """Its line in the free list, strongly read."""
    item = get_item(SandboxItem, *models.free_key(sandbox_id))
    return None if item is None else _free_entry(item)


def chain_end(sandbox_id: str) -> tuple[int, str]:
    """Sequence and hash of the last event about a sandbox, whether or not its row exists; 0 for none."""
    last = audit.history(entity_of(sandbox_id), limit=1).items
    return (last[0].sequence, last[0].hash) if last else (0, "")


def last_fence(sandbox_id: str) -> int:
    """The fence in the last event about a sandbox."""
    last = audit.history(entity_of(sandbox_id), limit=1).items
    return int(last[0].data.get("fence", 0)) if last else 0


# Writing


def insert(sandbox: Sandbox, *, draft: Draft, actor: Actor, now: datetime) -> Sandbox:
    """A new row and its event; free at once if it is available. A chain from an earlier life is continued.

    :raises Exists: when the id is taken.
    :raises Overtaken: when somebody else writes its chain at the same moment.
    """
    event = prepare_event(draft, entity=sandbox.entity, sequence=sandbox.version + 1, prev_hash=sandbox.audit_head, actor=actor, now=now)
    made = dataclasses.replace(sandbox, version=sandbox.version + 1, audit_head=event.head)
    values = {_ITEM_NAMES.get(name, name): _stored(name, getattr(made, name)) for name in _ATTRIBUTES}
    item = SandboxItem(*models.sandbox_key(made.sandbox_id), sandbox_id=made.sandbox_id, **values)
    row = Insert(item)
    try:
        transact([row, event.step, *_free_steps(made)])
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
) -> Sandbox:
    """Write what differs between ``before``, as it was read, and ``after``, with the event. A sandbox that becomes available
    is put into the free list in the same transaction.

    :raises KeyOvertaken: when ``key_step`` did not hold.
    :raises Overtaken: when somebody else changed the sandbox first.
    """
    if before.status is not after.status and after.status not in ALLOWED_MOVES[before.status]:
        raise ValueError(f"a sandbox does not go from {before.status} to {after.status}")
    sequence, prev_hash = (before.version, before.audit_head) if before.version else chain_end(before.sandbox_id)
    event = prepare_event(draft, entity=before.entity, sequence=sequence + 1, prev_hash=prev_hash, actor=actor, now=now)
    after = dataclasses.replace(after, updated_at=now, version=sequence + 1, audit_head=event.head)
    becomes_free = after.status is Status.AVAILABLE and (before.status is not Status.AVAILABLE or not before.version)
    row = _row_change(before, _differences(before, after), _as_read(before))
    steps = [row, event.step, *(_free_steps(after) if becomes_free else [])]
    if free_step is not None:
        steps.append(free_step)
    try:
        transact(steps if key_step is None else [key_step, *steps])
    except ConditionFailed as error:
        raise (KeyOvertaken if error.step is key_step else Overtaken) from error
    return after


def remove(sandbox: Sandbox, *, draft: Draft, actor: Actor, now: datetime) -> None:
    """The row goes, if it is as it was read and held by the same cleaner; its chain stays and gets a last event.

    :raises Overtaken: when it is not.
    """
    event = prepare_event(draft, entity=sandbox.entity, sequence=sandbox.version + 1, prev_hash=sandbox.audit_head, actor=actor, now=now)
    pk, sk = _row(sandbox)
    try:
        transact([Remove(SandboxItem, pk, _as_read(sandbox), range_key=sk), event.step])
    except ConditionFailed as error:
        raise Overtaken from error


# Steps that go into such a transaction


def open_key(record: KeyRecord | None, *, key: str, request_hash: str, sandbox: Sandbox) -> Upsert:
    """The key stands for ``sandbox`` from now on, if it is still as ``record`` says (``None``: absent)."""
    assert sandbox.allocated_at is not None
    actions: list[Action] = [
        SandboxItem.request_hash.set(request_hash),
        SandboxItem.sandbox_id.set(sandbox.sandbox_id),
        SandboxItem.fence.set(sandbox.fence),
        SandboxItem.track.set(sandbox.track),
        # With no status beside it, no index sees it.
        SandboxItem.allocated_at.set(to_epoch(sandbox.allocated_at)),
        SandboxItem.state.set("open"),
        SandboxItem.version.set(1 if record is None else record.version + 1),
    ]
    if sandbox.expires_at is not None:
        actions.append(SandboxItem.expires_at.set(to_epoch(sandbox.expires_at)))
    pk, sk = models.idempotency_item_key(key)
    return Upsert(SandboxItem, pk, actions, _key_as_read(record), range_key=sk)


def close_key(record: KeyRecord) -> Upsert:
    """The key stands for nothing any more."""
    pk, sk = models.idempotency_item_key(record.key)
    actions = [SandboxItem.state.set("closed"), SandboxItem.version.set(record.version + 1)]
    return Upsert(SandboxItem, pk, actions, _key_as_read(record), range_key=sk)


def take_free(sandbox_id: str) -> Remove:
    """Its line leaves the free list, which must hold it."""
    pk, sk = models.free_key(sandbox_id)
    return Remove(SandboxItem, pk, SandboxItem.pk.exists(), range_key=sk)


def drop_free(entry: FreeEntry) -> None:
    """A line whose sandbox is not free goes, unless it was written anew meanwhile."""
    pk, sk = models.free_key(entry.sandbox_id)
    try:
        transact([Remove(SandboxItem, pk, SandboxItem.version == entry.version, range_key=sk)])
    except ConditionFailed:
        return


def list_as_free(sandbox: Sandbox) -> None:
    """A sandbox that is available is in the free list, as it may not be after another program made it so.

    :raises Overtaken: when it is not as it was read any more.
    """
    try:
        transact(
            [_row_change(sandbox, [SandboxItem.updated_at.set(to_epoch(sandbox.updated_at))], _as_read(sandbox)), *_free_steps(sandbox)]
        )
    except ConditionFailed as error:
        raise Overtaken from error


# Bookkeeping that no event tells


def lease(sandbox: Sandbox, *, holder: str, until: datetime, now: datetime) -> Sandbox | None:
    """The sandbox for one cleaner alone until ``until``; ``None`` while another has it, or when it is not as it was read.

    The due time moves with it: a cleaner that dies is followed by another when its hold is over.
    """
    held = dataclasses.replace(sandbox, held_by=holder, held_until=until, due_at=until)
    free = SandboxItem.held_until.does_not_exist() | (SandboxItem.held_until <= _precise(now))
    return held if _note(sandbox, held, free) else None


def note(before: Sandbox, after: Sandbox) -> None:
    """Write what differs, in a row that is as it was read and held by the same cleaner.

    :raises Overtaken: when it is not.
    """
    if not _note(before, after, _held_as_read(before)):
        raise Overtaken


def mark_seen(sandbox: Sandbox, *, now: datetime) -> bool:
    """The provider lists it; whether it was noted (not when the row has changed)."""
    return _note(sandbox, dataclasses.replace(sandbox, last_synced=now, missing_since=None))


def mark_missing(sandbox: Sandbox, *, now: datetime) -> bool:
    """The provider does not list it, seen for the first time; whether it was noted."""
    return _note(sandbox, dataclasses.replace(sandbox, missing_since=now))


def _note(before: Sandbox, after: Sandbox, further: Condition | None = None) -> bool:
    actions = _differences(before, after)
    if not actions:
        return True
    condition = _as_read(before) if further is None else _as_read(before) & further
    try:
        update_one(_row_change(before, actions, condition))
    except ConditionFailed:
        return False
    return True


# Facts of the pool


def keep_counts(stats: Stats) -> None:
    """What a job has counted; the newest count wins."""
    pk, sk = models.counts_key()
    counts = json.dumps({status.value: number for status, number in stats.counts.items()}, sort_keys=True)
    at = to_epoch(stats.counted_at)
    newer = SandboxItem.counts_at.does_not_exist() | (SandboxItem.counts_at <= at)
    with contextlib.suppress(ConditionFailed):
        update_one(Upsert(SandboxItem, pk, [SandboxItem.counts_at.set(at), SandboxItem.counts.set(counts)], newer, range_key=sk))


def last_counts() -> Stats | None:
    item = get_item(SandboxItem, *models.counts_key())
    if item is None or item.counts is None:
        return None
    return Stats(from_epoch(item.counts_at or 0), {Status(name): number for name, number in json.loads(item.counts).items()})


def keep_sync(sync: LastSync, *, draft: Draft | None, actor: Actor, now: datetime) -> None:
    """The last look at the provider's list; one that was stopped has an event (``draft``) on the chain of the pool itself.

    :raises Overtaken: when another look was kept at the same moment.
    """
    pk, sk = models.sync_key()
    item = get_item(SandboxItem, pk, sk)
    version, head = (0, "") if item is None else (int(item.version or 0), item.audit_head or "")
    actions: list[Action] = [SandboxItem.last_synced.set(to_epoch(sync.at)), SandboxItem.listed.set(sync.listed)]
    actions.append(SandboxItem.stopped.set(sync.stopped) if sync.stopped else SandboxItem.stopped.remove())
    steps: list[Step] = []
    if draft is not None:
        event = prepare_event(draft, entity=POOL_ENTITY, sequence=version + 1, prev_hash=head, actor=actor, now=now)
        actions += [SandboxItem.version.set(version + 1), SandboxItem.audit_head.set(event.head)]
        steps.append(event.step)
    unchanged = SandboxItem.version == version if version else SandboxItem.version.does_not_exist()
    try:
        transact([Upsert(SandboxItem, pk, actions, unchanged, range_key=sk), *steps])
    except ConditionFailed as error:
        raise Overtaken from error


def last_sync() -> LastSync | None:
    item = get_item(SandboxItem, *models.sync_key())
    if item is None or item.last_synced is None:
        return None
    return LastSync(from_epoch(item.last_synced), int(item.listed or 0), item.stopped or "")


def pool_head() -> tuple[int, str]:
    """Version and hash of the chain of the pool itself."""
    item = get_item(SandboxItem, *models.sync_key())
    return (0, "") if item is None else (int(item.version or 0), item.audit_head or "")


# Pages


def page_by_status(
    status: Status, *, cursor: str | None, limit: int, allocated_until: datetime | None = None, newest_first: bool = False
) -> Page[Sandbox | Unreadable]:
    """The seed's StatusIndex; ``allocated_until`` keeps to those allocated not later."""
    condition = None if allocated_until is None else SandboxItem.allocated_at <= to_epoch(allocated_until)
    return query_page(
        SandboxItem,
        status.value,
        index=SandboxItem.status_index,
        pattern=f"sandboxes.by_status:{status}:{newest_first}:{allocated_until}",
        convert=_record,
        unreadable=_unreadable,
        cursor=cursor,
        limit=limit,
        range_condition=condition,
        newest_first=newest_first,
    )


def page_of_track(track: str, *, cursor: str | None, limit: int) -> Page[Sandbox]:
    """The seed's TrackIndex, newest allocation first."""
    return query_page(
        SandboxItem,
        track,
        index=SandboxItem.track_index,
        pattern=f"sandboxes.of_track:{track}",
        convert=_record,
        cursor=cursor,
        limit=limit,
        newest_first=True,
    )


def page_of_key(key: str, *, cursor: str | None, limit: int) -> Page[Sandbox]:
    """The seed's IdempotencyIndex, newest allocation first."""
    return query_page(
        SandboxItem,
        key,
        index=SandboxItem.idempotency_index,
        pattern=f"sandboxes.of_key:{key}",
        convert=_record,
        cursor=cursor,
        limit=limit,
        newest_first=True,
    )


def page_due(due: Due, *, until: datetime | None, cursor: str | None, limit: int) -> Page[Sandbox | Unreadable]:
    """What a job must do by ``until`` (``None``: ever), earliest first."""
    return query_page(
        SandboxItem,
        due.value,
        index=SandboxItem.due_index,
        pattern=f"sandboxes.due:{due}",
        convert=_record,
        unreadable=_unreadable,
        cursor=cursor,
        limit=limit,
        range_condition=None if until is None else SandboxItem.due_at <= _precise(until),
    )


def free_shards() -> range:
    """The partitions of the free list."""
    return range(models.FREE_SHARDS)


def page_free(shard: int, *, cursor: str | None, limit: int, after: str = "") -> Page[FreeEntry]:
    """One shard of the free list, strongly read, from the sandbox id ``after`` on."""
    return query_page(
        SandboxItem,
        models.free_pk(shard),
        pattern=f"sandboxes.free:{shard}:{after}",
        convert=_free_entry,
        cursor=cursor,
        limit=limit,
        range_condition=SandboxItem.sk > models.sandbox_key(after)[0] if after else None,
        consistent=True,
    )


# Converting


def _row(sandbox: Sandbox) -> models.Key:
    return models.sandbox_key(sandbox.sandbox_id)


def _row_change(sandbox: Sandbox, actions: Sequence[Action], condition: Condition) -> Change:
    pk, sk = _row(sandbox)
    return Change(SandboxItem, pk, actions, condition, range_key=sk)


def _free_steps(sandbox: Sandbox) -> list[Step]:
    """The line of the free list and the count of returns, for a sandbox that becomes available."""
    if sandbox.status is not Status.AVAILABLE:
        return []
    pk, sk = models.free_key(sandbox.sandbox_id)
    pool_pk, pool_sk = models.pool_key()
    returned = models.returns_in(models.free_shard_of(sandbox.sandbox_id))
    line = [
        SandboxItem.sandbox_id.set(sandbox.sandbox_id),
        SandboxItem.name.set(sandbox.name),
        SandboxItem.version.set(sandbox.version),
    ]
    return [
        # Over whatever line is left from before: it is the row's own condition that decides.
        Upsert(SandboxItem, pk, line, _always(), range_key=sk),
        Upsert(SandboxItem, pool_pk, [returned.add(1)], _always(), range_key=pool_sk),
    ]


def _always() -> Condition:
    condition: Condition = SandboxItem.pk.exists() | SandboxItem.pk.does_not_exist()
    return condition


def _as_read(sandbox: Sandbox) -> Condition:
    """Ours by the version; the rest is for programs that know no version."""
    condition = _held_as_read(sandbox)
    for name in ("version", "status", "allocated_at", "track", "fence"):
        condition &= _equals(name, sandbox)
    return condition


def _held_as_read(sandbox: Sandbox) -> Condition:
    return _equals("held_by", sandbox)


def _equals(name: str, sandbox: Sandbox) -> Condition:
    attribute, stored = _ATTRIBUTES[name], _stored(name, getattr(sandbox, name))
    condition: Condition = attribute.does_not_exist() if stored is None else attribute == stored
    # A row that no program of ours has written may say 0, or nothing.
    if stored is None and name in _NUMBERS:
        condition |= attribute == 0
    return condition


def _key_as_read(record: KeyRecord | None) -> Condition:
    condition: Condition = SandboxItem.pk.does_not_exist() if record is None else SandboxItem.version == record.version
    return condition


def _differences(before: Sandbox, after: Sandbox) -> list[Action]:
    actions: list[Action] = []
    for name, attribute in _ATTRIBUTES.items():
        old, new = _stored(name, getattr(before, name)), _stored(name, getattr(after, name))
        if old != new:
            actions.append(attribute.remove() if new is None else attribute.set(new))
    return actions


def _whole(moment: datetime) -> int:
    return to_epoch(moment)


def _precise(moment: datetime) -> float:
    """Epoch seconds with milliseconds, rounded down: what is due now must not be stored as due in a moment."""
    return math.floor(moment.timestamp() * 1000) / 1000


_ATTRIBUTES: dict[str, Attribute[Any]] = {
    "name": SandboxItem.name,
    "external_id": SandboxItem.external_id,
    "status": SandboxItem.status,
    "lab_duration_hours": SandboxItem.lab_duration_hours,
    "created_at": SandboxItem.created_at,
    "updated_at": SandboxItem.updated_at,
    "allocated_at": SandboxItem.allocated_at,
    "track": SandboxItem.allocated_to_track,
    "key": SandboxItem.idempotency_key,
    "expires_at": SandboxItem.expires_at,
    "grace_ends_at": SandboxItem.grace_ends_at,
    "lent_at": SandboxItem.lent_at,
    "fence": SandboxItem.fence,
    "due": SandboxItem.due,
    "due_at": SandboxItem.due_at,
    "deletion_requested_at": SandboxItem.deletion_requested_at,
    "deletion_retry_count": SandboxItem.deletion_retry_count,
    "delete_sent_at": SandboxItem.delete_sent_at,
    "delete_generation": SandboxItem.delete_generation,
    "clean_error": SandboxItem.clean_error,
    "quarantine_reason": SandboxItem.quarantine_reason,
    "held_by": SandboxItem.held_by,
    "held_until": SandboxItem.held_until,
    "last_synced": SandboxItem.last_synced,
    "missing_since": SandboxItem.missing_since,
    "last_released_by": SandboxItem.last_released_by,
    "last_released_at": SandboxItem.last_released_at,
    "last_released_fence": SandboxItem.last_released_fence,
    "version": SandboxItem.version,
    "audit_head": SandboxItem.audit_head,
}
# The fields that the seed calls otherwise.
_ITEM_NAMES = {"track": "allocated_to_track", "key": "idempotency_key"}
_MILLISECONDS = frozenset({"due_at", "held_until", "delete_sent_at"})
_NUMBERS = frozenset({"lab_duration_hours", "fence", "deletion_retry_count", "version", "last_released_fence"})


def _stored(name: str, value: Any) -> Any:
    """A field of the record as its attribute holds it; ``None``: the attribute is not there."""
    if name == "allocated_at":
        return 0 if value is None else to_epoch(value)
    if isinstance(value, datetime):
        return _precise(value) if name in _MILLISECONDS else to_epoch(value)
    if name in _NUMBERS:
        return value if value or name in {"deletion_retry_count", "lab_duration_hours"} else None
    return str(value) if value else None


def _moment(seconds: float | None) -> datetime | None:
    return None if not seconds else from_epoch(seconds)


def _free_entry(item: SandboxItem) -> FreeEntry:
    return FreeEntry(sandbox_id=item.sandbox_id or "", name=item.name or "", version=int(item.version or 0))


def _unreadable(raw: RawItem) -> Unreadable:
    return Unreadable(str(raw["PK"]["S"]).partition("#")[2])


def _record(item: SandboxItem) -> Sandbox:
    return Sandbox(
        sandbox_id=item.sandbox_id or item.pk.partition("#")[2],
        name=item.name or "",
        external_id=item.external_id or "",
        status=Status(item.status),
        lab_duration_hours=item.lab_duration_hours or 0,
        created_at=from_epoch(item.created_at or 0),
        updated_at=from_epoch(item.updated_at or 0),
        allocated_at=_moment(item.allocated_at),
        track=item.allocated_to_track or "",
        key=item.idempotency_key or "",
        expires_at=_moment(item.expires_at),
        grace_ends_at=_moment(item.grace_ends_at),
        lent_at=_moment(item.lent_at),
        fence=int(item.fence or 0),
        due=None if item.due is None else Due(item.due),
        due_at=_moment(item.due_at),
        deletion_requested_at=_moment(item.deletion_requested_at),
        deletion_retry_count=int(item.deletion_retry_count or 0),
        delete_sent_at=_moment(item.delete_sent_at),
        delete_generation=item.delete_generation or "",
        clean_error=item.clean_error or "",
        quarantine_reason=item.quarantine_reason or "",
        held_by=item.held_by or "",
        held_until=_moment(item.held_until),
        last_synced=_moment(item.last_synced),
        missing_since=_moment(item.missing_since),
        last_released_by=item.last_released_by or "",
        last_released_at=_moment(item.last_released_at),
        last_released_fence=int(item.last_released_fence or 0),
        version=int(item.version or 0),
        audit_head=item.audit_head or "",
    )
