"""Memberships for the workflow: a claim is taken or given back, and Cognito is proved to have followed."""

from __future__ import annotations

import contextlib
from collections.abc import Sequence
from datetime import datetime, timedelta

from accessportal.directory.operations.claims import add_claim, remove_claim, take_back_given
from accessportal.directory.policy.words import key_of
from accessportal.directory.states import Claim, GroupRole, Membership, person_entity
from accessportal.directory.store.reading import get_group, get_membership, get_person_with_memberships
from accessportal.kernel.actors import Actor
from accessportal.kernel.clock import Clock
from accessportal.kernel.errors import Conflict, NotFound
from accessportal.kernel.proofs import Proof, Waiting
from accessportal.mirror import store
from accessportal.mirror.effects.converging import Attempt, converge
from accessportal.mirror.queries import is_mirrored
from accessportal.store.transactions import Guard

# Another worker is at it, or a later change waits: it takes a moment. What failed comes again after the caller's own gap.
_SOON = timedelta(seconds=2)
_LATER = timedelta(seconds=30)


def hold_membership(
    *,
    email: str,
    group_id: str,
    role: GroupRole,
    claim: str,
    ends_at: datetime,
    guards: Sequence[Guard],
    actor: Actor,
    clock: Clock,
) -> Proof | Waiting:
    """Hold the membership by ``claim`` until ``ends_at``, and prove that Cognito has the person in the group; repeat it freely. Who is
    unknown or disabled, and a full group, are waited for. :raises Conflict: when one of the caller's ``guards`` fails."""
    wanted = Claim(claim, role, ends_at)
    try:
        add_claim(email=email, group_id=group_id, claim=wanted, guards=guards, actor=actor, now=clock.now())
    except NotFound as error:
        return _waiting(error.code, error.message, clock)
    except Conflict as error:
        if error.code == "guard_failed":
            raise
        return _waiting(error.code, error.message, clock)
    attempt = _prove(email, clock)
    if not attempt.is_done:
        return _not_yet(attempt, clock)
    return _held(email, group_id, claim, attempt, clock)


def release_membership(*, email: str, group_id: str, claim: str, actor: Actor, clock: Clock) -> Proof | Waiting:
    """Give ``claim`` and what was given by it back, and prove that Cognito has the person there only as other claims say (``kept_by``).
    Repeat it freely, also when person or group is gone."""
    try:
        # A person who was deleted took the claim along. Cognito may still have to forget them.
        with contextlib.suppress(NotFound):
            remove_claim(email=email, group_id=group_id, claim_id=claim, actor=actor, now=clock.now())
        take_back_given(claim, actor=actor, clock=clock)
    except Conflict as error:
        # Others keep coming between, which passes: nobody may take it for done by somebody else.
        return Waiting(error.code, error.message, clock.now() + _SOON, is_error=False)
    attempt = _prove(email, clock)
    if not attempt.is_done:
        return _not_yet(attempt, clock)
    return _released(email, group_id, claim, attempt, clock)


def _prove(email: str, clock: Clock) -> Attempt:
    """Cognito read back, whether or not something is pending: a proof stands on what is there now."""
    key = key_of(email)
    if key is None:
        # Nobody can have it, here or there.
        return Attempt(is_done=True)
    entity = person_entity(key)
    if is_mirrored() and store.find_pending(entity) is None:
        store.ask([entity], now=clock.now())
    return converge(entity=entity, clock=clock)


def _held(email: str, group_id: str, claim: str, attempt: Attempt, clock: Clock) -> Proof | Waiting:
    """What was proved in Cognito is what the table said then; it must still say that the claim counts."""
    key, now = key_of(email) or "", clock.now()
    person, memberships = get_person_with_memberships(key)
    membership = next((one for one in memberships if one.group_id == group_id), None)
    group = get_group(group_id)
    if person is None or membership is None or membership.claim(claim) is None or membership.role_at(now) is None:
        return _waiting("claim_lost", "The membership was taken away meanwhile.", clock)
    if not person.is_enabled:
        return _waiting("person_disabled", f"{person.email} is disabled.", clock)
    if group is None or not group.is_enabled:
        return _waiting("group_disabled", f"The group {group_id} is disabled.", clock)
    return _proof("GRANTED", attempt, now, is_present=True, kept_by=_others(membership, claim, now))


def _released(email: str, group_id: str, claim: str, attempt: Attempt, clock: Clock) -> Proof | Waiting:
    now = clock.now()
    membership = get_membership(key_of(email) or "", group_id)
    if membership is None:
        return _proof("REVOKED", attempt, now, is_present=False)
    if membership.claim(claim) is not None:
        return _waiting("claimed_again", "The membership was claimed again meanwhile.", clock)
    kept_by = _others(membership, claim, now)
    return _proof("KEPT" if kept_by else "REVOKED", attempt, now, is_present=bool(kept_by), kept_by=kept_by)


def _others(membership: Membership, claim: str, now: datetime) -> tuple[str, ...]:
    return tuple(sorted(one.claim_id for one in membership.claims if one.claim_id != claim and one.counts_at(now)))


def _proof(status: str, attempt: Attempt, now: datetime, *, is_present: bool, kept_by: tuple[str, ...] = ()) -> Proof:
    return Proof(is_present, job_id="", job_status=status, called_at=attempt.called_at, proved_at=now, kept_by=kept_by)


def _not_yet(attempt: Attempt, clock: Clock) -> Waiting:
    if attempt.is_error:
        return Waiting("mirror_failed", attempt.reason, clock.now() + _LATER, is_error=True)
    return Waiting("mirror_busy", attempt.reason, clock.now() + _SOON, is_error=False)


def _waiting(code: str, reason: str, clock: Clock) -> Waiting:
    return Waiting(code, reason, clock.now() + _LATER, is_error=True)
