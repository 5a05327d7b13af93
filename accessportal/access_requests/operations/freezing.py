"""Freezing leases: where it is ordered, the access goes off, or on again, and when that is proved the lease is so."""

from __future__ import annotations

import random
from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from functools import partial

from accessportal.access_requests import policy, store
from accessportal.access_requests.kinds.account_lease.grant import key_of
from accessportal.access_requests.states import AccessRequest, FreezeReport, Work
from accessportal.assignments import operations as assignments
from accessportal.kernel.actors import system
from accessportal.kernel.clock import Clock
from accessportal.kernel.errors import Conflict, Unavailable
from accessportal.kernel.pages import as_far
from accessportal.kernel.proofs import Proof, Waiting
from accessportal.kernel.runs import Run, each
from accessportal.leases import operations as leases
from accessportal.leases import queries as lent
from accessportal.leases.states import Lease, LeaseState, NoSuchLease
from accessportal.store.restores import held_back, held_restore

FREEZER = system("freeze_leases")
_WORKERS = 8
_PATIENCE = timedelta(seconds=25)


def freeze_leases(*, clock: Clock, workers: int = _WORKERS) -> FreezeReport:
    """Put off or on the access of every lease of which that was ordered and is due. Any number may run at once: each step is idempotent,
    and access goes on only while that is still wanted. What waits or fails is tried again after a growing gap."""
    run = _Freezing(clock=clock)
    due = list(as_far(lent.to_freeze(now=clock.now(), past=run.pass_over), told=partial(run.fail, "leases to freeze")))
    each(due, run.look_at, workers=workers, name="freeze")
    return FreezeReport(frozen=tuple(run.frozen), unfrozen=tuple(run.unfrozen), waiting=run.waiting, failures=run.failed)


@dataclass(kw_only=True)
class _Freezing(Run):
    passes = (Conflict, NoSuchLease)
    clock: Clock
    frozen: list[str] = field(default_factory=list)
    unfrozen: list[str] = field(default_factory=list)
    waiting: int = 0

    def look_at(self, seen: Lease) -> None:
        self.unit(seen.lease_id, partial(self._one, seen.lease_id))

    def _one(self, lease_id: str) -> None:
        lease = lent.get_lease(lease_id=lease_id)
        if lease.wanted is None:
            return
        try:
            left = self._do(lease)
        except Unavailable as error:
            self._put_off(lease, error.message, self.clock.now())
            raise
        now = self.clock.now()
        if left is not None:
            self.waiting += 1
            self._put_off(lease, left.reason, left.retry_at)
        elif lease.wanted is LeaseState.FROZEN:
            leases.note_access_off(lease_id=lease_id, actor=FREEZER, now=now)
            self.frozen.append(lease_id)
        else:
            leases.note_access_on(lease_id=lease_id, actor=FREEZER, now=now)
            self.unfrozen.append(lease_id)

    def _do(self, lease: Lease) -> Waiting | None:
        """What is still waited for at last; a job of IAM Identity Center that ends soon is stood by."""
        give_up_at = self.clock.now() + _PATIENCE
        while True:
            # All of them: one that is lost keeps no other access as it is.
            left = next(iter(list(_left_to_do(lease, self.clock))), None)
            if left is None or left.is_error or left.retry_at > give_up_at:
                return left
            self.clock.sleep((left.retry_at - self.clock.now()).total_seconds())

    def _put_off(self, lease: Lease, error: str, retry_at: datetime) -> None:
        now = self.clock.now()
        due_at = max(retry_at, now + policy.retry_gap(work=Work.REVOKE, attempts=lease.attempts + 1, jitter=random.random()))
        leases.put_off(lease_id=lease.lease_id, error=error, due_at=due_at, actor=FREEZER, now=now)


def _left_to_do(lease: Lease, clock: Clock) -> Iterator[Waiting]:
    """What is not proved yet of what was ordered, claim by claim."""
    requests = store.get_many(lease.claims)
    for claim in sorted(lease.claims):
        request = requests.get(claim)
        if request is None:
            words = f"The request {claim} is lost, and nobody knows whether it still gives access. Run reconcile_assignments."
            yield Waiting("request_lost", words, clock.now(), is_error=True)
            continue
        outcome = _put_off_access(request, lease, clock) if lease.wanted is LeaseState.FROZEN else _put_on_access(request, lease, clock)
        if outcome is not None:
            yield outcome


def _put_off_access(request: AccessRequest, lease: Lease, clock: Clock) -> Waiting | None:
    key = key_of(request, lease.account_id)
    outcome = assignments.release(
        key=key,
        claim=request.request_id,
        # Unfrozen meanwhile, it stays.
        guards=[lent.still(lease)],
        subject=request.subject_id,
        actor=FREEZER,
        clock=clock,
    )
    if isinstance(outcome, Waiting):
        return outcome
    others = set(outcome.kept_by) - set(lease.claims)
    if others:
        words = f"The same access is held beside the lease, by {', '.join(sorted(others))}. End that, too."
        return Waiting("held_beside", words, clock.now(), is_error=True)
    return None


def _put_on_access(request: AccessRequest, lease: Lease, clock: Clock) -> Waiting | None:
    if not request.is_granted or request.is_over(clock.now()):
        # Its own work grants it, or takes it back.
        return None
    if held_restore() is not None:
        return held_back(clock.now())
    outcome = assignments.hold(
        key=key_of(request, lease.account_id),
        claim=request.request_id,
        guards=[store.still_wanted(request.request_id), lent.still(lease)],
        subject=request.subject_id,
        actor=FREEZER,
        clock=clock,
    )
    return None if isinstance(outcome, Proof) else outcome
