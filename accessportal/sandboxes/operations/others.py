"""What other programs did to rows: they know the seed's attributes alone, so our notes are caught up before a verb goes on."""

from __future__ import annotations

import dataclasses
from datetime import datetime

from accessportal.audit.states import Draft
from accessportal.kernel.actors import Actor
from accessportal.kernel.clock import to_epoch
from accessportal.sandboxes import policy
from accessportal.sandboxes.config import current
from accessportal.sandboxes.operations.shared import held_anew, leaving_free_list, load, released_by, told, unheld
from accessportal.sandboxes.policy import Mending
from accessportal.sandboxes.states import Due, KeyRecord, Sandbox, Status, Unreadable
from accessportal.sandboxes.store import keys, rows
from accessportal.store.transactions import Step


def load_mended(sandbox_id: str, *, actor: Actor, now: datetime) -> Sandbox:
    """Load it, with our own notes caught up."""
    return mended(load(sandbox_id), actor=actor, now=now)


def mended(sandbox: Sandbox, *, actor: Actor, now: datetime) -> Sandbox:
    """Catch our own notes up with what another program did to the row."""
    mending, key_step = policy.mending_of(sandbox), None
    match mending:
        case Mending.NOTHING:
            return sandbox
        case Mending.ADOPT:
            after, draft = _adopted(sandbox)
            key_step = _opening_key(sandbox, after)
        case Mending.TAKE_IN:
            after, draft = _taken_in(sandbox, now)
        case Mending.LIST_AS_FREE:
            after, draft = listed_as_free(sandbox)
    free_step = None if mending is Mending.LIST_AS_FREE else leaving_free_list(sandbox)
    return rows.change(sandbox, after, draft=draft, actor=actor, now=now, key_step=key_step, free_step=free_step)


def listed_as_free(sandbox: Sandbox) -> tuple[Sandbox, Draft]:
    """What another program made available, as it is among our free ones, and how that is told."""
    after = dataclasses.replace(unheld(sandbox, Status.AVAILABLE), generation="")
    return after, told("sandbox.adopted", after, track="", status=after.status.value)


def _adopted(sandbox: Sandbox) -> tuple[Sandbox, Draft]:
    after = policy.as_lent(held_anew(sandbox, sandbox.track), grace_seconds=current().grace_seconds)
    after = dataclasses.replace(
        after,
        fence=rows.continued(sandbox).fence_held,
        lent_at=sandbox.allocated_at,
        due=Due.EXPIRE,
        due_at=after.grace_ends_at,
        claims={} if sandbox.is_foreign else sandbox.claims,
        generation="" if sandbox.is_foreign else sandbox.generation,
    )
    expires_at = 0 if after.expires_at is None else to_epoch(after.expires_at)
    return after, told("sandbox.adopted", after, track=after.track, key=after.key, expires_at=expires_at, status=after.status.value)


def _opening_key(sandbox: Sandbox, after: Sandbox) -> Step | None:
    """The step with which its key stands for it; ``None`` while that stands for another."""
    record = keys.get_key(sandbox.key) if sandbox.key else None
    if not sandbox.key or _may_stand(record):
        return None
    return keys.open_key(record, key=sandbox.key, request_hash="", sandbox=after)


def _may_stand(record: KeyRecord | None) -> bool:
    """Whether the key stands for a sandbox, or for one whose row can't be read, so that nobody knows."""
    if record is None or not record.is_open:
        return False
    found = rows.look(record.sandbox_id)
    return isinstance(found, Unreadable) or policy.stands_for(record, found)


def _taken_in(sandbox: Sandbox, now: datetime) -> tuple[Sandbox, Draft]:
    """It was marked for deletion: with an allocation of ours, or with one of its own that we never saw."""
    after = dataclasses.replace(
        sandbox, fence=rows.continued(sandbox).fence_held, lent_at=sandbox.allocated_at, due=Due.CLEAN, due_at=now, claims={}
    )
    after = released_by(after, sandbox.track, now=sandbox.deletion_requested_at or now)
    return after, told("sandbox.released", after, track=after.track, is_outside=True, status=after.status.value)
