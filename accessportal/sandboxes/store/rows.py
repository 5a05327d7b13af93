"""The rows of sandboxes. Every change of one is a transaction with its audit event."""

from __future__ import annotations

import dataclasses
from collections.abc import Collection, Iterable, Mapping, Sequence
from datetime import datetime

from pynamodb.expressions.condition import Condition

from accessportal.audit import queries as audit
from accessportal.audit.operations import prepare_event
from accessportal.audit.states import AuditEvent, Draft
from accessportal.kernel.actors import Actor
from accessportal.kernel.clock import precise
from accessportal.kernel.errors import Unavailable
from accessportal.kernel.moments import furthest
from accessportal.sandboxes import models, policy
from accessportal.sandboxes.models import SandboxItem
from accessportal.sandboxes.states import ALLOWED_MOVES, Sandbox, Status, Unreadable, entity_of
from accessportal.sandboxes.store import free_list, keys
from accessportal.sandboxes.store.converting import as_read, record_of, sandboxes
from accessportal.store import transactions
from accessportal.store.reading import ItemKey, ReadAhead, get_ahead, get_together
from accessportal.store.restores import first_fence
from accessportal.store.transactions import Change, ConditionFailed, Remove, Step, transact, update_one


class Overtaken(transactions.Overtaken):
    """Another writer changed the sandbox since it was read. Read it again and decide again."""


class Unlisted(Overtaken):
    """Its line has left the free list: somebody else has it."""


class KeyOvertaken(transactions.Overtaken):
    """Another writer changed the idempotency key since it was read. Read it again and decide again."""


class Exists(Exception):
    """There is a sandbox with this id already."""


class FurtherFailed(Exception):
    """A step that was handed in beside the sandbox's own did not hold; nothing was written."""

    def __init__(self, step: Step) -> None:
        super().__init__("a further condition of the change did not hold")
        self.step = step


@dataclasses.dataclass(frozen=True, slots=True)
class Onward:
    """To whom a sandbox that becomes free goes in the very write: ``lent`` as it is then, told by a second event, its key opened."""

    lent: Sandbox
    draft: Draft
    key_step: Step


def get(sandbox_id: str, *, ahead: ReadAhead | None = None) -> Sandbox | None:
    """Read strongly; a row that is not as the contract says is ``Unavailable`` and named."""
    return _read(sandbox_id, get_ahead(key_of(sandbox_id), ahead or {}))


def key_of(sandbox_id: str) -> ItemKey:
    """The row's item."""
    return (SandboxItem, *models.sandbox_key(sandbox_id))


def get_all(sandbox_ids: Iterable[str]) -> dict[str, Sandbox | None]:
    """As :func:`get` for each of them, read together."""
    wanted = list(dict.fromkeys(sandbox_ids))
    items = get_together([key_of(sandbox_id) for sandbox_id in wanted])
    return {sandbox_id: _read(sandbox_id, item) for sandbox_id, item in zip(wanted, items, strict=True)}


def _read(sandbox_id: str, item: SandboxItem | None) -> Sandbox | None:
    try:
        return None if item is None else record_of(item)
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


def look_all(sandbox_ids: Collection[str]) -> Mapping[str, Sandbox | Unreadable | None]:
    """As :func:`look` for each of them, read together unless one can't be read."""
    try:
        return get_all(sandbox_ids)
    except Unavailable as error:
        if error.code != "item_unreadable":
            raise
        return {sandbox_id: look(sandbox_id) for sandbox_id in sandbox_ids}


def last_event(sandbox_id: str) -> AuditEvent | None:
    """The end of a sandbox's chain, whether or not its row exists; it has the fence, as every event does."""
    return next(iter(audit.history(entity_of(sandbox_id), limit=1).items), None)


def continued(sandbox: Sandbox) -> Sandbox:
    """Give the sandbox the fence of its last hand-over, for what is written next: a row that another program made anew lacks it, and its
    chain tells; what the tables have lost, the epoch of their restore."""
    if sandbox.version:
        return sandbox
    last = last_event(sandbox.sandbox_id)
    return dataclasses.replace(sandbox, fence=max(sandbox.fence, int(last.data["fence"]) if last else 0, first_fence()))


def insert(
    sandbox: Sandbox, *, draft: Draft, actor: Actor, now: datetime, then: Onward | None = None, further: Sequence[Step] = ()
) -> Sandbox:
    """Write a new row and its event; if it is available it is free at once, or goes on to whom ``then`` says. A chain from an earlier life
    is continued."""
    made, events = _told(sandbox, draft, then, sandbox.version, sandbox.audit_head, actor, now)
    row = sandboxes.insertion(made)
    own = [row, *events, *([then.key_step] if then else []), *(free_list.put(made) if made.status is Status.AVAILABLE else [])]
    try:
        transact([*further, *own])
    except ConditionFailed as error:
        if any(error.step is one for one in further):
            raise FurtherFailed(error.step) from error
        if then is not None and error.step is then.key_step:
            raise KeyOvertaken from error
        raise (Exists if error.step is row else Overtaken) from error
    return made


def _told(
    after: Sandbox, draft: Draft, then: Onward | None, sequence: int, prev_hash: str, actor: Actor, now: datetime
) -> tuple[Sandbox, list[Step]]:
    """What it comes to at last, and the steps that tell it: one event, or two where it goes on."""
    steps: list[Step] = []
    for one in [draft, *([then.draft] if then else [])]:
        event = prepare_event(one, entity=after.entity, sequence=sequence + 1, prev_hash=prev_hash, actor=actor, now=now)
        sequence, prev_hash = sequence + 1, event.head
        steps.append(event.step)
    return dataclasses.replace(then.lent if then else after, version=sequence, audit_head=prev_hash), steps


def change(
    before: Sandbox,
    after: Sandbox,
    *,
    draft: Draft,
    actor: Actor,
    now: datetime,
    is_from_line: bool = False,
    key_step: Step | None = None,
    free_step: Step | None = None,
    then: Onward | None = None,
    further: Sequence[Step] = (),
) -> Sandbox:
    """Write what differs between ``before``, as it was read (or is told by its line of the free list), and ``after``, with the event, the
    caller's steps, the line of a sandbox that becomes free (or goes on to whom ``then`` says), and what becomes of its open key; or one of
    the errors above."""
    if before.status is not after.status and after.status not in ALLOWED_MOVES[before.status]:
        raise ValueError(f"a sandbox does not go from {before.status} to {after.status}")
    sequence, prev_hash = before.version, before.audit_head
    if not before.version and (last := last_event(before.sandbox_id)) is not None:
        # Another program made the row anew of one that had left the pool.
        sequence, prev_hash = last.sequence, last.hash
    after, events = _told(after, draft, then, sequence, prev_hash, actor, now)
    after = dataclasses.replace(after, updated_at=now)
    key_step = then.key_step if then else key_step
    becomes_free = after.status is Status.AVAILABLE and (before.status is not Status.AVAILABLE or policy.is_unlisted(before))
    expected = as_read(before) & free_list.as_listed(before) if is_from_line else as_read(before)
    row = dataclasses.replace(sandboxes.change(before, after), condition=expected)
    beside = [step for step in (key_step, free_step) if step is not None]
    steps = [*further, *beside, row, *events, *(free_list.put(after) if becomes_free else [])]
    try:
        _write(steps, None if key_step is not None else keys.follow(before, after))
    except ConditionFailed as error:
        if any(error.step is one for one in further):
            raise FurtherFailed(error.step) from error
        failed = {id(key_step): KeyOvertaken, id(free_step): Unlisted}.get(id(error.step), Overtaken)
        raise failed from error
    return after


def _write(steps: Sequence[Step], following: Change | None) -> None:
    if following is None:
        transact(steps)
        return
    try:
        transact([following, *steps])
    except ConditionFailed as error:
        if error.step is not following:
            raise
        # No open key stands for that hand-over, and none can by now: a key is opened only with a change of the row.
        transact(steps)


def remove(sandbox: Sandbox, *, draft: Draft, actor: Actor, now: datetime) -> None:
    """Remove the row, if it is as it was read and held by the same cleaner; its chain stays and gets a last event."""
    event = prepare_event(draft, entity=sandbox.entity, sequence=sandbox.version + 1, prev_hash=sandbox.audit_head, actor=actor, now=now)
    pk, sk = models.sandbox_key(sandbox.sandbox_id)
    try:
        transact([Remove(SandboxItem, pk, as_read(sandbox), range_key=sk), event.step])
    except ConditionFailed as error:
        raise Overtaken from error


def lease(sandbox: Sandbox, *, holder: str, until: datetime, now: datetime) -> Sandbox | None:
    """Give the sandbox to one cleaner until ``until``; ``None`` while another has it, or when it is not as it was read. The due time moves
    with it: a cleaner that dies is followed by another."""
    held = dataclasses.replace(sandbox, held_by=holder, held_until=until, due_at=until)
    held_until, beyond = SandboxItem.held_until, furthest(now, longest=until - now)
    free = held_until.does_not_exist() | (held_until <= precise(now)) | (held_until > precise(beyond))
    return held if _note(sandbox, held, free) else None


def note(before: Sandbox, after: Sandbox) -> None:
    """Write what differs, in a row that is as it was read and held by the same cleaner."""
    if not _note(before, after):
        raise Overtaken


def _note(before: Sandbox, after: Sandbox, further: Condition | None = None) -> bool:
    change = sandboxes.change(before, after)
    if not change.actions:
        return True
    try:
        update_one(dataclasses.replace(change, condition=as_read(before) if further is None else as_read(before) & further))
    except ConditionFailed:
        return False
    return True
