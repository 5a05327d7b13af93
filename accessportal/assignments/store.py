"""The only user of the Assignments item class. Every change is one transaction with its audit event."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from datetime import datetime, timedelta
from functools import partial

from accessportal.assignments.models import AssignmentItem, assignment_id_for
from accessportal.assignments.states import ALLOWED_MOVES, Assignment, AssignmentKey, AssignmentState
from accessportal.audit import operations as audit
from accessportal.audit.states import Draft
from accessportal.kernel.actors import Actor
from accessportal.kernel.clock import from_epoch, precise
from accessportal.kernel.errors import Conflict, NoAnswer
from accessportal.kernel.moments import furthest
from accessportal.kernel.pages import Page, Unreadable
from accessportal.store.coordination import leave_seat, take_seat
from accessportal.store.listing import Listing
from accessportal.store.reading import scan_records
from accessportal.store.records import Records
from accessportal.store.restores import first_fence
from accessportal.store.transactions import Change, ConditionFailed, Guard, Overtaken, Step, transact, update_one

SEATS = "identity-center.open-creations"


class NoSeat(Exception):
    """All places for open creations are taken."""


def _require_own_key(assignment: Assignment) -> None:
    """Who writes to the table could else have another's access taken away, and this one told as gone."""
    if assignment.assignment_id != id_of(assignment.key):
        raise ValueError("its parts are not those of its key")


_assignments = Records(AssignmentItem, Assignment, check=_require_own_key)
get = _assignments.get
get_many = _assignments.get_many
every_assignment = partial(scan_records, AssignmentItem, _assignments.record)
"""The whole table, for checks."""
_by_state = Listing("assignments.by_state", AssignmentItem, _assignments.record, AssignmentItem.state_index)


def find(key: AssignmentKey) -> Assignment | None:
    """Strongly read; ``None`` when it was never claimed."""
    return get(id_of(key))


def id_of(key: AssignmentKey) -> str:
    """The id that our record of it has, if there is one."""
    return assignment_id_for(
        principal_type=key.principal_type,
        principal_id=key.principal_id,
        account_id=key.account_id,
        permission_set_arn=key.permission_set_arn,
    )


def list_by_state(state: AssignmentState, *, cursor: str | None = None, limit: int = 50) -> Page[Assignment]:
    """Assignments in ``state``, longest unchanged first."""
    return _by_state(state.value, cursor=cursor, limit=limit)


def every_in(state: AssignmentState, *, past: Callable[[Unreadable], object] | None = None) -> Iterator[Assignment]:
    """All in ``state``, longest unchanged first; ``past`` as in :func:`every`."""
    return _by_state.every(state.value, past=past)


def insert(
    key: AssignmentKey,
    *,
    claims: frozenset[str],
    state: AssignmentState,
    draft: Draft,
    guards: Sequence[Guard],
    actor: Actor,
    now: datetime,
) -> None:
    """A new assignment item.

    :raises Overtaken: when it exists already.
    :raises Conflict: when a guard does not hold.
    """
    new = Assignment(id_of(key), key=key, state=state, claims=claims, fence=first_fence() + 1, changed_at=now)
    try:
        audit.insert(_assignments, new, draft=draft, actor=actor, now=now, further=guards)
    except ConditionFailed as error:
        raise _refusal(error) from error


def add_claim(assignment: Assignment, claim: str, *, draft: Draft, guards: Sequence[Guard], actor: Actor, now: datetime) -> Assignment:
    """:raises Conflict: when a guard does not hold. :raises Overtaken: when somebody else changed it first."""
    claimed = replace(assignment, claims=assignment.claims | {claim})
    return _change(assignment, claimed, draft=draft, further=guards, actor=actor, now=now)


def remove_claim(
    assignment: Assignment, claim: str, *, draft: Draft, guards: Sequence[Guard] = (), actor: Actor, now: datetime
) -> Assignment:
    """As :func:`add_claim`."""
    return _change(assignment, replace(assignment, claims=assignment.claims - {claim}), draft=draft, further=guards, actor=actor, now=now)


def move(
    assignment: Assignment,
    to: AssignmentState,
    *,
    fence: int,
    draft: Draft,
    actor: Actor,
    now: datetime,
    seats: int,
    proved_at: datetime | None = None,
) -> Assignment:
    """Give it the state ``to`` and the new ``fence`` (:func:`next_fence`); CREATING takes one of ``seats``, leaving CREATING frees it.

    Entering CREATING or DELETING forgets the former job: the intent is written before its call is sent.

    :raises NoSeat: when as many creations as allowed are open.
    :raises Overtaken: when somebody else changed it first.
    """
    if to not in ALLOWED_MOVES[assignment.state]:
        raise ValueError(f"an assignment does not go from {assignment.state} to {to}")
    moved = replace(assignment, state=to, fence=fence, changed_at=now, proved_at=proved_at or assignment.proved_at)
    if to in (AssignmentState.CREATING, AssignmentState.DELETING):
        moved = replace(moved, job_id="", called_at=None)
    seat: list[Step] = []
    if to is AssignmentState.CREATING:
        seat.append(take_seat(SEATS, holder=assignment.assignment_id, seats=seats))
    elif assignment.state is AssignmentState.CREATING:
        seat.append(leave_seat(SEATS, holder=assignment.assignment_id))
    return _change(assignment, moved, draft=draft, further=seat, actor=actor, now=now)


def next_fence(assignment: Assignment) -> int:
    """The fence that its next change of state gets: above its own, and above all that were given before a restore of the tables.

    What is there was raised right after the restore (:func:`raise_fence`), so that taking it back asks for nothing more."""
    return 1 + (max(assignment.fence, first_fence()) if assignment.state is AssignmentState.ABSENT else assignment.fence)


def raise_fence(assignment: Assignment, fence: int, *, draft: Draft, actor: Actor, now: datetime) -> None:
    """:raises Overtaken: when somebody else changed it first."""
    _change(assignment, replace(assignment, fence=fence), draft=draft, actor=actor, now=now)


def give_seat_back(assignment: Assignment) -> None:
    """Free its place among the open creations although it stays CREATING. Bookkeeping: no version, no event.

    :raises Overtaken: when its state has changed.
    """
    _change_seat(assignment, leave_seat(SEATS, holder=assignment.assignment_id))


def take_seat_again(assignment: Assignment, *, seats: int) -> None:
    """One of ``seats`` for what is CREATING, whether or not it still has one. Bookkeeping: no version, no event.

    :raises NoSeat: when as many creations as allowed are open.
    :raises Overtaken: when its state has changed.
    """
    _change_seat(assignment, take_seat(SEATS, holder=assignment.assignment_id, seats=seats))


def set_job(assignment: Assignment, *, job_id: str, called_at: datetime | None, draft: Draft, actor: Actor, now: datetime) -> Assignment:
    """:raises Overtaken: when somebody else changed it first."""
    return _change(assignment, replace(assignment, job_id=job_id, called_at=called_at), draft=draft, actor=actor, now=now)


def acquire(assignment_id: str, *, now: datetime, until: datetime) -> Assignment | None:
    """The assignment for one worker alone until ``until``; ``None`` while another worker has it."""
    busy = AssignmentItem.busy_until
    beyond = precise(furthest(now, longest=until - now))
    free = busy.does_not_exist() | (busy < precise(now)) | (busy > beyond)
    step = Change(AssignmentItem, assignment_id, [busy.set(precise(until))], free)
    try:
        item = update_one(step)
    except ConditionFailed:
        return None
    assert isinstance(item, AssignmentItem)
    return _assignments.record(item)


def let_go(assignment_id: str, *, until: datetime) -> None:
    """End the hold that :func:`acquire` gave with this ``until``; nothing happens when it is somebody else's by now."""
    busy = AssignmentItem.busy_until
    try:
        update_one(Change(AssignmentItem, assignment_id, [busy.remove()], busy == precise(until)))
    except ConditionFailed:
        return


def _change(
    before: Assignment, after: Assignment, *, draft: Draft, further: Sequence[Step] = (), actor: Actor, now: datetime
) -> Assignment:
    try:
        return audit.change(_assignments, before, after, draft=draft, actor=actor, now=now, further=further)
    except ConditionFailed as error:
        raise _refusal(error) from error


def contended() -> NoAnswer:
    """What is told when others never cease to come between."""
    return NoAnswer("Too many requests claim this assignment at once. Try again.", code="assignment_contended")


def _refusal(error: ConditionFailed) -> Exception:
    if isinstance(error.step, Guard):
        return Conflict("The request changed while the assignment was being changed.", code="guard_failed")
    return NoSeat()


def _change_seat(assignment: Assignment, step: Step) -> None:
    # A holder is known by its id alone: without this condition an old worker could free a place of a later creation.
    same = Guard(AssignmentItem, assignment.assignment_id, AssignmentItem.fence == assignment.fence)
    try:
        transact([same, step])
    except ConditionFailed as error:
        raise Overtaken if isinstance(error.step, Guard) else NoSeat from error


def lease_until(now: datetime, seconds: float) -> datetime:
    """``now`` plus ``seconds``, in the resolution that is stored (so that :func:`let_go` finds it again)."""
    return from_epoch(precise(now + timedelta(seconds=seconds)))
