"""The only user of the Assignments item class. Every change is one transaction with its audit event."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from datetime import datetime, timedelta

from pynamodb.expressions.update import Action

from accessportal.assignments.models import AssignmentItem, assignment_id_for
from accessportal.assignments.states import ALLOWED_MOVES, Assignment, AssignmentKey, AssignmentState
from accessportal.audit.operations import prepare_event
from accessportal.audit.states import Draft
from accessportal.catalog.states import PrincipalType
from accessportal.kernel.actors import Actor
from accessportal.kernel.clock import from_epoch
from accessportal.kernel.errors import Conflict
from accessportal.kernel.moments import furthest
from accessportal.kernel.pages import Page, Unreadable
from accessportal.store.coordination import leave_seat, take_seat
from accessportal.store.listing import Listing
from accessportal.store.reading import read_item, read_items
from accessportal.store.restores import first_fence
from accessportal.store.transactions import Change, ConditionFailed, Guard, Insert, Step, transact, update_one

SEATS = "identity-center.open-creations"


class Overtaken(Exception):
    """Another writer changed the assignment since it was read. Read it again and decide again."""


class NoSeat(Exception):
    """All places for open creations are taken."""


def find(key: AssignmentKey) -> Assignment | None:
    """Strongly read."""
    return get(id_for(key))


def get(assignment_id: str) -> Assignment | None:
    """Strongly read."""
    return read_item(AssignmentItem, _record, assignment_id)


def get_many(assignment_ids: Iterable[str], *, past: Callable[[Unreadable], object] | None = None) -> dict[str, Assignment]:
    """Those that exist, by id, strongly read; ``past`` as in :func:`every`."""
    return read_items(AssignmentItem, _record, assignment_ids, past=past)


def id_for(key: AssignmentKey) -> str:
    return assignment_id_for(
        principal_type=key.principal_type,
        principal_id=key.principal_id,
        account_id=key.account_id,
        permission_set_arn=key.permission_set_arn,
    )


def page_by_state(state: AssignmentState, *, cursor: str | None, limit: int) -> Page[Assignment]:
    return _BY_STATE(state.value, cursor=cursor, limit=limit)


def every_in(state: AssignmentState, *, past: Callable[[Unreadable], object] | None = None) -> Iterator[Assignment]:
    """All in ``state``, longest unchanged first; ``past`` as in :func:`every`."""
    return _BY_STATE.every(state.value, past=past)


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
    assignment_id = id_for(key)
    event = prepare_event(draft, entity=entity_for(assignment_id), sequence=1, prev_hash="", actor=actor, now=now)
    item = AssignmentItem(
        assignment_id,
        principal_type=key.principal_type.value,
        principal_id=key.principal_id,
        account_id=key.account_id,
        permission_set_arn=key.permission_set_arn,
        claims=set(claims) or None,
        state=state.value,
        fence=first_fence() + 1,
        changed_at=_epoch(now),
        version=1,
        audit_head=event.head,
    )
    _commit([Insert(item), event.step], guards)


def add_claim(assignment: Assignment, claim: str, *, draft: Draft, guards: Sequence[Guard], actor: Actor, now: datetime) -> None:
    _change(assignment, [AssignmentItem.claims.add({claim})], draft=draft, guards=guards, actor=actor, now=now)


def remove_claim(assignment: Assignment, claim: str, *, draft: Draft, actor: Actor, now: datetime) -> None:
    _change(assignment, [AssignmentItem.claims.delete({claim})], draft=draft, actor=actor, now=now)


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
    actions: list[Action] = [
        AssignmentItem.state.set(to.value),
        AssignmentItem.fence.set(fence),
        AssignmentItem.changed_at.set(_epoch(now)),
    ]
    if to in (AssignmentState.CREATING, AssignmentState.DELETING):
        actions += [AssignmentItem.job_id.remove(), AssignmentItem.called_at.remove()]
    if proved_at is not None:
        actions.append(AssignmentItem.proved_at.set(_epoch(proved_at)))
    extra: list[Step] = []
    if to is AssignmentState.CREATING:
        extra.append(take_seat(SEATS, holder=assignment.assignment_id, seats=seats))
    elif assignment.state is AssignmentState.CREATING:
        extra.append(leave_seat(SEATS, holder=assignment.assignment_id))
    audit_head = _change(assignment, actions, draft=draft, actor=actor, now=now, extra=extra)
    starts_job = to in (AssignmentState.CREATING, AssignmentState.DELETING)
    return replace(
        assignment,
        state=to,
        fence=fence,
        changed_at=from_epoch(_epoch(now)),
        job_id="" if starts_job else assignment.job_id,
        called_at=None if starts_job else assignment.called_at,
        proved_at=assignment.proved_at if proved_at is None else proved_at,
        version=assignment.version + 1,
        audit_head=audit_head,
    )


def next_fence(assignment: Assignment) -> int:
    """The fence that its next change of state gets: above its own, and above all that were given before a restore of the tables.

    What is there was raised right after the restore (:func:`raise_fence`), so that taking it back asks for nothing more.

    :raises Unavailable: when the store did not answer.
    """
    return 1 + (max(assignment.fence, first_fence()) if assignment.state is AssignmentState.ABSENT else assignment.fence)


def raise_fence(assignment: Assignment, fence: int, *, draft: Draft, actor: Actor, now: datetime) -> None:
    """:raises Overtaken: when somebody else changed it first."""
    _change(assignment, [AssignmentItem.fence.set(fence)], draft=draft, actor=actor, now=now)


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


def set_job(assignment: Assignment, *, job_id: str, called_at: datetime, draft: Draft, actor: Actor, now: datetime) -> Assignment:
    actions = [AssignmentItem.job_id.set(job_id), AssignmentItem.called_at.set(_epoch(called_at))]
    audit_head = _change(assignment, actions, draft=draft, actor=actor, now=now)
    return replace(assignment, job_id=job_id, called_at=called_at, version=assignment.version + 1, audit_head=audit_head)


def forget_job(assignment: Assignment, *, draft: Draft, actor: Actor, now: datetime) -> Assignment:
    """The service does not know the job any more: as if its call had not been answered."""
    actions = [AssignmentItem.job_id.remove(), AssignmentItem.called_at.remove()]
    audit_head = _change(assignment, actions, draft=draft, actor=actor, now=now)
    return replace(assignment, job_id="", called_at=None, version=assignment.version + 1, audit_head=audit_head)


def acquire(assignment_id: str, *, now: datetime, until: datetime) -> Assignment | None:
    """The assignment for one worker alone until ``until``; ``None`` while another worker has it."""
    busy = AssignmentItem.busy_until
    beyond = _epoch(furthest(now, longest=until - now))
    free = busy.does_not_exist() | (busy < _epoch(now)) | (busy > beyond)
    step = Change(AssignmentItem, assignment_id, [busy.set(_epoch(until))], free)
    try:
        item = update_one(step)
    except ConditionFailed:
        return None
    assert isinstance(item, AssignmentItem)
    return _record(item)


def let_go(assignment_id: str, *, until: datetime) -> None:
    """End the hold that :func:`acquire` gave with this ``until``; nothing happens when it is somebody else's by now."""
    busy = AssignmentItem.busy_until
    try:
        update_one(Change(AssignmentItem, assignment_id, [busy.remove()], busy == _epoch(until)))
    except ConditionFailed:
        return


def entity_for(assignment_id: str) -> str:
    """The name of its chain in the audit log."""
    return f"assignment#{assignment_id}"


def _change(
    assignment: Assignment,
    actions: Sequence[Action],
    *,
    draft: Draft,
    actor: Actor,
    now: datetime,
    guards: Sequence[Guard] = (),
    extra: Sequence[Step] = (),
) -> str:
    """Write it and return the new ``audit_head``."""
    version = assignment.version + 1
    event = prepare_event(
        draft, entity=entity_for(assignment.assignment_id), sequence=version, prev_hash=assignment.audit_head, actor=actor, now=now
    )
    change = Change(
        AssignmentItem,
        assignment.assignment_id,
        [*actions, AssignmentItem.version.set(version), AssignmentItem.audit_head.set(event.head)],
        AssignmentItem.version == assignment.version,
    )
    _commit([change, event.step, *extra], guards)
    return event.head


def _commit(steps: Sequence[Step], guards: Sequence[Guard]) -> None:
    try:
        transact([*steps, *guards])
    except ConditionFailed as error:
        if isinstance(error.step, Guard):
            raise Conflict("The request changed while the assignment was being changed.", code="guard_failed") from error
        if error.position < 2:
            raise Overtaken from error
        raise NoSeat from error


def _change_seat(assignment: Assignment, step: Step) -> None:
    # A holder is known by its id alone: without this condition an old worker could free a place of a later creation.
    same = Guard(AssignmentItem, assignment.assignment_id, AssignmentItem.fence == assignment.fence)
    try:
        transact([same, step])
    except ConditionFailed as error:
        raise Overtaken if isinstance(error.step, Guard) else NoSeat from error


def _epoch(moment: datetime) -> float:
    return round(moment.timestamp(), 3)


def _moment(seconds: float | None) -> datetime | None:
    return None if seconds is None else from_epoch(seconds)


def lease_until(now: datetime, seconds: float) -> datetime:
    """``now`` plus ``seconds``, in the resolution that is stored (so that :func:`let_go` finds it again)."""
    return from_epoch(_epoch(now + timedelta(seconds=seconds)))


def _record(item: AssignmentItem) -> Assignment:
    return Assignment(
        assignment_id=item.assignment_id,
        key=AssignmentKey(
            principal_type=PrincipalType(item.principal_type),
            principal_id=item.principal_id,
            account_id=item.account_id,
            permission_set_arn=item.permission_set_arn,
        ),
        claims=frozenset(item.claims or ()),
        state=AssignmentState(item.state),
        job_id=item.job_id or "",
        called_at=_moment(item.called_at),
        fence=int(item.fence),
        changed_at=from_epoch(item.changed_at),
        proved_at=_moment(item.proved_at),
        busy_until=_moment(item.busy_until),
        version=int(item.version),
        audit_head=item.audit_head,
    )


_BY_STATE = Listing("assignments.by_state", AssignmentItem, _record, AssignmentItem.state_index)
