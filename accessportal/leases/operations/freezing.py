"""Freezing and unfreezing: the order is written, then the access is put off or on and proved, then the lease is so."""

from __future__ import annotations

from dataclasses import replace
from datetime import datetime

from accessportal.kernel import texts
from accessportal.kernel.actors import Actor
from accessportal.kernel.errors import Conflict
from accessportal.kernel.ports import after_commit
from accessportal.leases import policy, queries
from accessportal.leases.operations.shared import changed_lease, until_written
from accessportal.leases.states import Lease, LeaseState


def freeze(*, lease_id: str, reason: str, actor: Actor, now: datetime) -> Lease:
    """Order that the access goes off, while account and lease stay. Repeated, it changes nothing.

    :raises Conflict: before the lease has started.
    """
    policy.may_operate(actor).require()
    texts.check_reason(reason, missing="Say why, for those who come after you.")
    return _order(lease_id, LeaseState.FROZEN, "freeze_asked", reason.strip(), actor, now)


def unfreeze(*, lease_id: str, actor: Actor, now: datetime) -> Lease:
    """Order that the access goes on again. Repeated, it changes nothing."""
    policy.may_operate(actor).require()
    return _order(lease_id, LeaseState.ACTIVE, "unfreeze_asked", "", actor, now)


def note_access_off(*, lease_id: str, actor: Actor, now: datetime) -> Lease:
    """The access is proved gone: the lease is frozen, if that is what was ordered."""
    return _note(lease_id, LeaseState.FROZEN, "frozen", actor, now)


def note_access_on(*, lease_id: str, actor: Actor, now: datetime) -> Lease:
    """The access is proved there: the lease is active again, if that is what was ordered."""
    return _note(lease_id, LeaseState.ACTIVE, "unfrozen", actor, now)


def put_off(*, lease_id: str, error: str, due_at: datetime, actor: Actor, now: datetime) -> Lease:
    """What was ordered could not be done: it is tried again at ``due_at``."""

    def attempt() -> Lease:
        lease = queries.get_lease(lease_id=lease_id)
        if lease.wanted is None:
            return lease
        after = replace(lease, due_at=due_at, attempts=lease.attempts + 1, error=error)
        return changed_lease(lease, after, "freeze_delayed", actor=actor, now=now, error=error, attempts=after.attempts)

    return until_written(attempt)


def _order(lease_id: str, state: LeaseState, verb: str, reason: str, actor: Actor, now: datetime) -> Lease:
    def attempt() -> Lease:
        lease = queries.get_lease(lease_id=lease_id)
        if lease.state is LeaseState.STARTING:
            raise Conflict("This lease has not started yet. Revoke it, or wait until it has.", code="lease_starting", present=lease)
        if (lease.wanted or lease.state) is state:
            return lease
        after = replace(lease, wanted=state, freeze_reason=reason or lease.freeze_reason, due_at=now, attempts=0, error="")
        return changed_lease(lease, after, verb, actor=actor, now=now, reason=reason)

    ordered = until_written(attempt)
    after_commit("freeze_leases")
    return ordered


def _note(lease_id: str, state: LeaseState, verb: str, actor: Actor, now: datetime) -> Lease:
    def attempt() -> Lease:
        lease = queries.get_lease(lease_id=lease_id)
        if lease.wanted is not state:
            return lease
        after = lease.in_state(state)
        if state is LeaseState.ACTIVE:
            after = replace(after, freeze_reason="")
        return changed_lease(lease, after, verb, actor=actor, now=now, reason=after.freeze_reason)

    return until_written(attempt)
