"""Tending the pool by hand: adding, keeping out of use, bringing back."""

from __future__ import annotations

import dataclasses
import uuid
from datetime import datetime
from functools import partial

from accessportal.kernel.actors import Actor
from accessportal.kernel.clock import whole_second
from accessportal.kernel.errors import Conflict, InvalidRequest
from accessportal.sandboxes import policy
from accessportal.sandboxes.operations.handing import make_free
from accessportal.sandboxes.operations.others import load_mended
from accessportal.sandboxes.operations.shared import check_fence, leaving_free_list, load, told, unheld, until_written
from accessportal.sandboxes.states import Due, Sandbox, Status
from accessportal.sandboxes.store import rows
from accessportal.store.restores import last_restore

_NAMESPACE = uuid.UUID("5b0f9f0e-6d1b-4d0a-9a86-6f3c0a7b7e21")


def sandbox_id_for(external_id: str) -> str:
    """The id that the provider's sandbox always gets, so that two looks at the provider's list can't add it twice."""
    return str(uuid.uuid5(_NAMESPACE, external_id))


def add(*, external_id: str, name: str, lab_duration_hours: float, generation: str = "", actor: Actor, now: datetime) -> Sandbox:
    """Put a sandbox that is ready at the provider, in the life that ``generation`` names, into the pool, free, or to the first who waits
    for it. One that was there before is cleaned first, and so is any while a restore is not confirmed."""
    policy.may_operate(actor).require()
    policy.check_text(external_id, field="external_id")
    policy.check_text(name, field="name")
    if lab_duration_hours <= 0:
        raise InvalidRequest("The lab's duration must be above zero hours.", code="duration_not_positive", field="lab_duration_hours")
    sandbox_id = sandbox_id_for(external_id)
    last, restore = rows.last_event(sandbox_id), last_restore()
    at = whole_second(now)
    fresh = Sandbox(
        sandbox_id=sandbox_id,
        name=name,
        external_id=external_id,
        status=Status.AVAILABLE,
        lab_duration_hours=lab_duration_hours,
        created_at=at,
        updated_at=at,
        last_synced=at,
        generation=generation,
        fence=0 if restore is None else restore.epoch,
    )
    if last is not None:
        fence = max(fresh.fence, int(last.data["fence"]))
        fresh = dataclasses.replace(fresh, version=last.sequence, audit_head=last.hash, fence=fence)
    if last is not None or (restore is not None and restore.is_held):
        fresh = dataclasses.replace(fresh, status=Status.PENDING_DELETION, deletion_requested_at=at, due=Due.CLEAN, due_at=now)
    draft = told("sandbox.added", fresh, name=name, external_id=external_id, status=fresh.status.value)
    write = partial(rows.insert, fresh, draft=draft, actor=actor, now=now)
    try:
        return make_free(fresh, write, actor=actor, now=now) if fresh.status is Status.AVAILABLE else write()
    except (rows.Exists, rows.Overtaken) as error:
        raise Conflict(f"{external_id} is in the pool already.", code="sandbox_exists") from error


def mend(*, sandbox_id: str, actor: Actor, now: datetime) -> Sandbox:
    """Our notes follow what another program did to the row: an allocation gets its deadline and fence, a mark its cleaning."""
    return until_written(lambda: load_mended(sandbox_id, actor=actor, now=now))


def quarantine(*, sandbox_id: str, reason: str, fence: int | None = None, actor: Actor, now: datetime) -> Sandbox:
    """Put the sandbox out of use until somebody restores it: a holder loses it at once. With ``fence`` nobody loses it who got it since the
    operator looked (``sandbox_moved_on``)."""
    policy.may_operate(actor).require()
    policy.check_reason(reason)

    def attempt() -> Sandbox:
        sandbox = load_mended(sandbox_id, actor=actor, now=now)
        if sandbox.status is Status.QUARANTINED:
            raise Conflict("This sandbox is in quarantine already.", code="already_quarantined", present=sandbox)
        check_fence(sandbox, fence)
        return quarantine_loaded(sandbox, reason=reason, actor=actor, now=now)

    return until_written(attempt)


def quarantine_loaded(sandbox: Sandbox, *, reason: str, actor: Actor, now: datetime) -> Sandbox:
    """:raises Overtaken: when it changed since it was read."""
    after = dataclasses.replace(unheld(sandbox, Status.QUARANTINED), quarantine_reason=reason, clean_error=sandbox.clean_error)
    draft = told("sandbox.quarantined", sandbox, fence=after.fence, reason=reason, track=sandbox.track, status=after.status.value)
    free_step = leaving_free_list(sandbox)
    return rows.change(sandbox, after, draft=draft, actor=actor, now=now, free_step=free_step)


def restore(*, sandbox_id: str, actor: Actor, now: datetime) -> Sandbox:
    """Have a stale or quarantined sandbox cleaned once more; then it is free, or leaves the pool if the provider has it no longer."""
    policy.may_operate(actor).require()

    def attempt() -> Sandbox:
        sandbox = load(sandbox_id)
        if sandbox.status not in {Status.STALE, Status.QUARANTINED}:
            words = f"Only stale and quarantined sandboxes are restored; this one is {sandbox.status}."
            raise Conflict(words, code="not_restorable", present=sandbox)
        after = dataclasses.replace(
            unheld(sandbox, Status.PENDING_DELETION),
            deletion_requested_at=whole_second(now),
            due=Due.CLEAN,
            due_at=now,
            quarantine_reason="",
        )
        draft = told("sandbox.restored", after, status=after.status.value)
        return rows.change(sandbox, after, draft=draft, actor=actor, now=now)

    return until_written(attempt)
