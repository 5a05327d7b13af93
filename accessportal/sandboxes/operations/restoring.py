"""What a restore of the tables leaves to do in the pool: what was lent, cleaned or added in the lost time, no table tells."""

from __future__ import annotations

import dataclasses
from contextlib import suppress
from datetime import datetime
from functools import partial

from accessportal.kernel.actors import Actor
from accessportal.kernel.clock import Clock
from accessportal.kernel.errors import Conflict
from accessportal.kernel.pages import every
from accessportal.sandboxes import effects, policy
from accessportal.sandboxes.operations.others import load_mended
from accessportal.sandboxes.operations.shared import load, told, unreadable_failure, until_written
from accessportal.sandboxes.operations.syncing import add_listed
from accessportal.sandboxes.operations.tending import quarantine_loaded, restore
from accessportal.sandboxes.states import Sandbox, SettleReport, Status, Unreadable
from accessportal.sandboxes.store import pages, rows
from accessportal.store.restores import Restore
from accessportal.upstream.provider import Provider

_RESTORED = "The tables were restored to"


def settle_restore(*, restored: Restore, provider: Provider | None, actor: Actor, clock: Clock) -> SettleReport:
    """Raise every fence above all that were given before; put out of use what is free or was reset since it was lent; bring in what the
    pool lacks, to be cleaned first. May be repeated at any time."""
    policy.may_operate(actor).require()
    listed = {} if provider is None else effects.read_list(provider)
    present = {row.sandbox_id: row for row in pages.every_row()}
    reason = f"{_RESTORED} {restored.restored_to:%Y-%m-%d %H:%M:%SZ}"
    quarantined: list[str] = []
    failures = [unreadable_failure(row) for row in present.values() if isinstance(row, Unreadable)]
    raised = 0
    for row in present.values():
        if isinstance(row, Sandbox):
            sandbox = until_written(partial(_raised, row.sandbox_id, restored.epoch, actor, clock.now()))
            raised += 1
            found = listed.get(sandbox.external_id)
            why = policy.doubt_after_restore(sandbox, found.generation if found else "", is_ready=found is None or found.is_ready)
            if why and _put_aside(sandbox, f"{reason}: {why}", actor, clock.now()):
                quarantined.append(sandbox.sandbox_id)
    known = {row.external_id for row in present.values()}
    new = [found for external_id, found in listed.items() if external_id not in known and found.is_ready]
    for found in new:
        add_listed(found, actor, clock)
    return SettleReport(raised=raised, quarantined=tuple(quarantined), added=len(new), failures=tuple(failures))


def clean_restored(*, restored: Restore, actor: Actor, clock: Clock) -> int:
    """Have cleaned what was put aside because of this restore, so that it is free after that; say how many."""
    policy.may_operate(actor).require()
    reason = f"{_RESTORED} {restored.restored_to:%Y-%m-%d %H:%M:%SZ}"
    cleaned = 0
    for row in _in_quarantine():
        if row.quarantine_reason.startswith(reason):
            with suppress(Conflict):
                restore(sandbox_id=row.sandbox_id, actor=actor, now=clock.now())
                cleaned += 1
    return cleaned


def _in_quarantine() -> list[Sandbox]:
    found = every(lambda cursor: pages.by_status(Status.QUARANTINED, cursor=cursor, limit=100))
    return [row for row in found if isinstance(row, Sandbox)]


def _raised(sandbox_id: str, epoch: int, actor: Actor, now: datetime) -> Sandbox:
    """:raises Overtaken: when it changed meanwhile."""
    sandbox = load_mended(sandbox_id, actor=actor, now=now)
    if sandbox.fence >= epoch:
        return sandbox
    after = dataclasses.replace(sandbox, fence=epoch)
    if sandbox.status is Status.PENDING_DELETION:
        # Its deletion may have been sent for a life that others have ended since: it is deleted as it is now.
        after = dataclasses.replace(after, delete_sent_at=None, delete_generation="", held_by="", held_until=None, due_at=now)
    draft = told("sandbox.fence_raised", after, status=after.status.value, track=after.track)
    return rows.change(sandbox, after, draft=draft, actor=actor, now=now)


def _put_aside(sandbox: Sandbox, reason: str, actor: Actor, now: datetime) -> bool:
    """Whether it is in quarantine now by this call."""

    def attempt() -> bool:
        fresh = load(sandbox.sandbox_id)
        if fresh.fence != sandbox.fence or fresh.status is not sandbox.status:
            return False
        quarantine_loaded(fresh, reason=reason, actor=actor, now=now)
        return True

    return until_written(attempt)
