"""One worker at a time drives an assignment; after a call that was sent too late, what was proved is proved again."""

from __future__ import annotations

from contextlib import suppress
from datetime import datetime, timedelta

from accessportal.assignments import store
from accessportal.assignments.effects.driving import Driver, HandBack, LateCall
from accessportal.assignments.policy import HOLD_SECONDS
from accessportal.assignments.states import AssignmentState, Drift
from accessportal.assignments.waits import wait
from accessportal.audit.states import Draft
from accessportal.kernel.actors import Actor
from accessportal.kernel.clock import Clock
from accessportal.kernel.errors import NoAnswer
from accessportal.kernel.proofs import Proof, Waiting
from accessportal.store.transactions import Overtaken


def converge(assignment_id: str, *, subject: str, actor: Actor, clock: Clock) -> Proof | Waiting:
    """Drive the assignment until it is what its claims want, proved by reading back, or until there is nothing to do but wait. One worker
    drives it at a time, the others get ``busy``. Errors of the service are waited for, too: nothing is final while access may exist.
    Unavailable when our own store does not answer."""
    until = store.lease_until(clock.now(), HOLD_SECONDS)
    try:
        assignment = store.acquire(assignment_id, now=clock.now(), until=until)
    except NoAnswer:
        # Ours, if it was written: nobody need wait for its end.
        _let_go(assignment_id, until)
        raise
    if assignment is None:
        return wait("busy", "Another worker is busy with this assignment", clock.now(), seconds=2)
    try:
        return Driver(assignment, subject=subject, actor=actor, clock=clock, until=until).run()
    except HandBack as stop:
        return stop.waiting
    except LateCall:
        return _take_charge_again(assignment_id, subject=subject, actor=actor, clock=clock)
    finally:
        _let_go(assignment_id, until)


def _let_go(assignment_id: str, until: datetime) -> None:
    """Without an answer the hold ends by itself, and what was proved counts all the same."""
    with suppress(NoAnswer):
        store.let_go(assignment_id, until=until)


def _take_charge_again(assignment_id: str, *, subject: str, actor: Actor, clock: Clock) -> Proof | Waiting:
    """After a late call: what is proved in our records may be so no more, and nobody else would look again."""
    _doubt(assignment_id, subject=subject, actor=actor, clock=clock)
    give_up_at = clock.now() + timedelta(seconds=HOLD_SECONDS)
    while True:
        outcome = converge(assignment_id, subject=subject, actor=actor, clock=clock)
        if isinstance(outcome, Proof) or clock.now() >= give_up_at:
            return outcome
        clock.sleep(max(1.0, (outcome.retry_at - clock.now()).total_seconds()))


def _doubt(assignment_id: str, *, subject: str, actor: Actor, clock: Clock) -> None:
    """Record a settled assignment as what it may have become: absent and unclaimed as present, present as being deleted. However many come
    between: nobody else knows of the call."""
    while True:
        assignment = store.get(assignment_id)
        assert assignment is not None, "assignments are never deleted"
        fence = store.next_fence(assignment)
        if assignment.state is AssignmentState.ABSENT and not assignment.is_wanted:
            to = AssignmentState.PRESENT
            draft = Draft("assignment.adopted", subject, {"state": to.value, "claims": [], "drift": Drift.LEFT_OVER.value})
        elif assignment.state is AssignmentState.PRESENT:
            to = AssignmentState.DELETING
            draft = Draft("assignment.deleting", subject, {"state": to.value, "fence": fence})
        else:
            return
        try:
            store.move(assignment, to, fence=fence, draft=draft, actor=actor, now=clock.now(), seats=1)
        except Overtaken:
            continue
        return
