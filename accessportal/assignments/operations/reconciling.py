"""Mending what differs between our records and IAM Identity Center, when told."""

from __future__ import annotations

from accessportal.assignments import policy, store
from accessportal.assignments.effects.call_queue import SharedPace
from accessportal.assignments.effects.converging import converge
from accessportal.assignments.effects.driving import target_of
from accessportal.assignments.states import OUTSIDE_CLAIM, AssignmentState, Drift, Finding, Remedy
from accessportal.audit.states import Draft
from accessportal.aws.errors import OutsideError
from accessportal.aws.identity_center import IdentityCenter
from accessportal.kernel.actors import Actor
from accessportal.kernel.clock import Clock
from accessportal.kernel.errors import Unavailable
from accessportal.kernel.proofs import Proof, Waiting
from accessportal.store.transactions import Overtaken

_UNRECORDED = (Drift.UNKNOWN, Drift.NOT_OURS)


def is_still_so(*, finding: Finding, clock: Clock) -> bool:
    """Say whether it differs as when it was found: both sides are read anew. Unavailable when one did not answer."""
    try:
        present = IdentityCenter(pace=SharedPace(clock)).is_present(target_of(finding.key))
    except OutsideError as error:
        raise Unavailable(f"IAM Identity Center could not be read: {error}", code="identity_center_unavailable") from error
    assignment, now = store.find(finding.key), clock.now()
    match finding.drift:
        case Drift.MISSING:
            return not present and assignment is not None and policy.is_held(assignment, now)
        case Drift.UNKNOWN | Drift.NOT_OURS:
            return present and assignment is None
        case Drift.LEFT_OVER:
            return present and assignment is not None and policy.is_left_to_itself(assignment, now)


def repair(*, finding: Finding, remedy: Remedy, actor: Actor, clock: Clock) -> Proof | Waiting | None:
    """Mend one difference with ``remedy``; ``None`` when the remedy is not for it. Ask :func:`is_still_so` before."""
    drift = finding.drift
    if remedy is Remedy.ADOPT and drift in _UNRECORDED:
        return _record(finding, frozenset({OUTSIDE_CLAIM}), actor, clock)
    if remedy is Remedy.REMOVE_UNKNOWN and drift in _UNRECORDED:
        return _record(finding, frozenset(), actor, clock)
    if remedy is Remedy.REPAIR and drift is Drift.LEFT_OVER:
        return _record(finding, frozenset(), actor, clock)
    if remedy is Remedy.REPAIR and drift is Drift.MISSING:
        return converge(store.id_of(finding.key), subject=finding.key.principal_id, actor=actor, clock=clock)
    return None


def go_on(*, actor: Actor, clock: Clock) -> list[Waiting]:
    """Go on with what was begun and left, and return what still waits: a repair that had to wait has no request whose work would come back
    to it."""
    outcomes = []
    for state in (AssignmentState.CREATING, AssignmentState.DELETING):
        for assignment in store.every_in(state):
            if not policy.is_settling(assignment, clock.now()):
                subject = assignment.key.principal_id
                outcomes.append(converge(assignment.assignment_id, subject=subject, actor=actor, clock=clock))
    return [outcome for outcome in outcomes if isinstance(outcome, Waiting)]


def _record(finding: Finding, claims: frozenset[str], actor: Actor, clock: Clock) -> Proof | Waiting:
    """Write down that it is there, then drive it to what its claims want: none means that it goes."""
    assignment = store.find(finding.key)
    data = {"state": AssignmentState.PRESENT.value, "claims": sorted(claims), "drift": finding.drift.value}
    draft = Draft("assignment.adopted", finding.key.principal_id, data)
    now = clock.now()
    try:
        if assignment is None:
            store.insert(finding.key, claims=claims, state=AssignmentState.PRESENT, draft=draft, guards=(), actor=actor, now=now)
        elif assignment.state is AssignmentState.ABSENT:
            fence = store.next_fence(assignment)
            store.move(assignment, AssignmentState.PRESENT, fence=fence, draft=draft, actor=actor, now=now, seats=1)
    except Overtaken:
        # Somebody claimed it at this moment; the claims decide.
        pass
    return converge(store.id_of(finding.key), subject=finding.key.principal_id, actor=actor, clock=clock)
