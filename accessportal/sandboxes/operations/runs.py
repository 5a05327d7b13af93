"""Runs: the pool's jobs on order. Ordering writes the run; a task, or the sweep after it, performs it."""

from __future__ import annotations

import dataclasses
import uuid
from datetime import datetime, timedelta
from functools import partial
from itertools import chain

from accessportal.audit.states import Draft
from accessportal.kernel.actors import Actor
from accessportal.kernel.clock import Clock, whole_second
from accessportal.kernel.errors import Conflict, NoAnswer, PortalError, Unavailable
from accessportal.kernel.moments import furthest, is_due
from accessportal.kernel.pages import Unreadable, as_far, every
from accessportal.kernel.ports import after_commit
from accessportal.sandboxes import policy
from accessportal.sandboxes.operations.cleaning import clean
from accessportal.sandboxes.operations.releasing import expire
from accessportal.sandboxes.operations.shared import SCOPE, until_written
from accessportal.sandboxes.operations.syncing import sync
from accessportal.sandboxes.states import POOL_ENTITY, NoSuchRun, Run, RunDue, RunKind, RunState, SyncStopped
from accessportal.sandboxes.store import pool, rows, runs
from accessportal.upstream.provider import Provider

# Longer than the task that performs may live (jobs.schedules): a second performer comes only when the first is surely dead.
HOLD = timedelta(minutes=15)
# One that was begun so often takes every performer down with it: a day of them, one after the other.
_MOST_BEGINNINGS = timedelta(days=1) // HOLD
_REMEMBERED = timedelta(days=7)
_COUNTS_KEPT = timedelta(days=8)
# At most so many runs, and counts, are forgotten at a time.
_FORGOTTEN_AT_ONCE = 100
_PAGE = 100
_NO_PROVIDER = "No sandbox provider is set: give PORTAL_SANDBOX_PROVIDER_URL."
Counts = dict[str, int]


def order_run(*, kind: RunKind, actor: Actor, now: datetime) -> Run:
    """Order a run of this kind. While one of the kind waits, that one is the answer: it begins after this order."""
    policy.may_operate(actor).require()
    run = until_written(partial(_order, kind, actor, now))
    after_commit("run_sandbox_work", run_id=run.run_id)
    return run


def _order(kind: RunKind, actor: Actor, now: datetime) -> Run:
    last_id, number = runs.last_run(kind)
    last = runs.get_run(last_id) if last_id else None
    if last is not None and last.state is RunState.QUEUED:
        return last
    run = Run(run_id=str(uuid.uuid4()), kind=kind, state=RunState.QUEUED, ordered_by=actor.name, ordered_at=whole_second(now))
    draft = Draft("sandbox.run_ordered", POOL_ENTITY, {"run_kind": kind.value, "run_id": run.run_id}, scope=SCOPE)
    runs.insert_run(run, after=number, draft=draft, actor=actor, now=now)
    return run


def perform_run(*, run_id: str, provider: Provider | None, clock: Clock) -> Run:
    """Perform the run, well or not, and leave one that has ended as it is. Without a ``provider`` it fails. What it does may happen twice
    when its performer dies: sync, expire and clean bear that."""
    run = runs.get_run(run_id)
    if run is None:
        raise NoSuchRun
    if not run.is_open:
        return run
    now = clock.now()
    if not is_due(run.held_until, now=now, longest=HOLD):
        raise Conflict("Another worker is performing this run.", code="run_held", present=run)
    try:
        begun = runs.begin_run(run, holder=str(uuid.uuid4()), until=now + HOLD, now=now)
        return _ended(begun, *_outcome(begun, provider, clock), clock=clock)
    except rows.Overtaken as error:
        raise Conflict("Another worker has taken this run up.", code="run_held", present=run) from error


def _outcome(run: Run, provider: Provider | None, clock: Clock) -> tuple[Counts, str]:
    """What the run did, and why it failed (empty: it did not)."""
    # A version for the order, and one for each beginning.
    if run.version - 1 > _MOST_BEGINNINGS:
        return {}, f"It was begun {_MOST_BEGINNINGS} times and never ended."
    try:
        return _synced(provider, clock) if run.kind is RunKind.SYNC else _cleaned_up(provider, clock)
    except PortalError as error:
        return {}, error.message


def _ended(run: Run, report: Counts, error: str, *, clock: Clock) -> Run:
    now = clock.now()
    state = RunState.FAILED if error else RunState.DONE
    return runs.end_run(
        dataclasses.replace(run, state=state, report=report, error=error, ended_at=whole_second(now)), forget_at=now + _REMEMBERED
    )


def _synced(provider: Provider | None, clock: Clock) -> tuple[Counts, str]:
    if provider is None:
        return {}, _NO_PROVIDER
    try:
        plan, error = sync(provider=provider, apply=True, clock=clock), ""
    except SyncStopped as stopped:
        plan, error = stopped.plan, stopped.message
    return plan.counts | {"mended": len(plan.to_mend)}, error


def _cleaned_up(provider: Provider | None, clock: Clock) -> tuple[Counts, str]:
    """What is over ends also without a provider: its holder's time does not depend on one."""
    expired = expire(clock=clock)
    if provider is None:
        return expired.counts, _NO_PROVIDER
    cleaned = clean(provider=provider, clock=clock)
    return {**expired.counts, **cleaned.counts, "failed": len(expired.failures) + len(cleaned.failures)}, cleaned.stopped


def perform_due_runs(*, provider: Provider | None, clock: Clock) -> tuple[Run, ...]:
    """Perform every run that waits, or whose performer died, and leave others' to them. One that can't be read is named after all the
    rest."""
    now = clock.now()
    performed = []
    missed: list[Unavailable] = []

    def pass_over(one: Unreadable) -> None:
        missed.append(one.error())

    due = every(lambda cursor: runs.page_runs(RunDue.PERFORM, until=now, cursor=cursor, limit=_PAGE), past=pass_over)
    beyond = furthest(now, longest=HOLD)
    left_ahead = every(lambda cursor: runs.page_runs(RunDue.PERFORM, beyond=beyond, cursor=cursor, limit=_PAGE), past=pass_over)
    for run in chain(as_far(due, told=missed.append), as_far(left_ahead, told=missed.append)):
        try:
            performed.append(perform_run(run_id=run.run_id, provider=provider, clock=clock))
        except (Conflict, NoSuchRun):
            continue
        except NoAnswer as error:
            missed.append(error)
    if missed:
        raise missed[0]
    return tuple(performed)


def forget_old(*, now: datetime) -> int:
    """Runs that ended a week ago and counts older than eight days are gone, some hundred at a time; says how many went."""
    ended = runs.page_runs(RunDue.FORGET, until=now, cursor=None, limit=_FORGOTTEN_AT_ONCE).items
    for run in ended:
        runs.remove_run(run)
    return len(ended) + pool.forget_counts(until=now - _COUNTS_KEPT, limit=_FORGOTTEN_AT_ONCE)
