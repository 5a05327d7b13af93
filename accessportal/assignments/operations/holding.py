"""Claiming and releasing."""

from __future__ import annotations

from collections.abc import Sequence

from accessportal.assignments import store
from accessportal.assignments.effects.converging import converge
from accessportal.assignments.states import Assignment, AssignmentKey, AssignmentState
from accessportal.audit.states import Draft
from accessportal.kernel.actors import Actor
from accessportal.kernel.clock import Clock
from accessportal.kernel.proofs import Proof, Waiting
from accessportal.store.transactions import Guard, until_written


def hold(*, key: AssignmentKey, claim: str, guards: Sequence[Guard], subject: str, actor: Actor, clock: Clock) -> Proof | Waiting:
    """Make ``claim`` one of the assignment's claims, and the assignment proved present. The claim is written only in a transaction in which
    the ``guards`` hold: Conflict when one does not. Repeating it is harmless."""

    def attempt() -> None:
        _add_claim(key, claim, guards=guards, subject=subject, actor=actor, clock=clock)

    until_written(attempt, contended=store.contended())
    return converge(store.id_of(key), subject=subject, actor=actor, clock=clock)


def release(*, key: AssignmentKey, claim: str, guards: Sequence[Guard] = (), subject: str, actor: Actor, clock: Clock) -> Proof | Waiting:
    """Take ``claim`` off the assignment; when it was the last one, the assignment is proved absent. While other claims hold it, the proof
    names them in ``kept_by`` and nothing is deleted. Conflict when one of ``guards`` does not hold. Repeating it is harmless."""

    def attempt() -> Assignment | None:
        found = store.find(key)
        if found is None or claim not in found.claims:
            return found
        draft = Draft("assignment.released", subject, {"claim": claim, "claims": sorted(found.claims - {claim})})
        return store.remove_claim(found, claim, draft=draft, guards=guards, actor=actor, now=clock.now())

    assignment = until_written(attempt, contended=store.contended())
    if assignment is None:
        # Never claimed: the request ended before its grant began.
        return Proof(is_present=False, job_id="", job_status="NEVER_CREATED", called_at=None, proved_at=clock.now())
    if assignment.claims:
        return _kept(assignment, clock)
    outcome = converge(assignment.assignment_id, subject=subject, actor=actor, clock=clock)
    if isinstance(outcome, Proof) and outcome.is_present:
        # Claimed anew while we were at it.
        again = store.find(key)
        assert again is not None, "assignments are never deleted"
        return _kept(again, clock)
    return outcome


def _add_claim(key: AssignmentKey, claim: str, *, guards: Sequence[Guard], subject: str, actor: Actor, clock: Clock) -> None:
    assignment = store.find(key)
    if assignment is not None and claim in assignment.claims:
        return
    claims = frozenset({claim}) if assignment is None else assignment.claims | {claim}
    draft = Draft("assignment.claimed", subject, {"claim": claim, "claims": sorted(claims)})
    if assignment is None:
        store.insert(key, claims=claims, state=AssignmentState.ABSENT, draft=draft, guards=guards, actor=actor, now=clock.now())
    else:
        store.add_claim(assignment, claim, draft=draft, guards=guards, actor=actor, now=clock.now())


def _kept(assignment: Assignment, clock: Clock) -> Proof:
    return Proof(
        is_present=assignment.state is AssignmentState.PRESENT,
        job_id="",
        job_status="KEPT",
        called_at=None,
        proved_at=clock.now(),
        kept_by=tuple(sorted(assignment.claims)),
    )
