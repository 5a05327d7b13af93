"""Runs: work on the pool that somebody ordered. At most one of each kind waits; each is one performer's at a time."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Sequence
from datetime import datetime

from pynamodb.expressions.condition import Condition
from pynamodb.expressions.update import Action

from accessportal.audit.states import Draft
from accessportal.kernel.actors import Actor
from accessportal.kernel.clock import from_epoch, precise, to_epoch, whole_second
from accessportal.kernel.errors import Unavailable
from accessportal.kernel.pages import Page
from accessportal.sandboxes import models
from accessportal.sandboxes.models import SandboxItem
from accessportal.sandboxes.states import Run, RunDue, RunKind, RunState
from accessportal.sandboxes.store.pages import due_within
from accessportal.sandboxes.store.pool import pool_steps
from accessportal.sandboxes.store.rows import Overtaken
from accessportal.store.listing import Listing
from accessportal.store.reading import get_item
from accessportal.store.transactions import Change, ConditionFailed, Insert, Remove, Upsert, transact, update_one


def get_run(run_id: str) -> Run | None:
    """Strongly read."""
    item = get_item(SandboxItem, *models.run_key(run_id))
    if item is None:
        return None
    try:
        return _run_of(item)
    except (TypeError, ValueError) as error:
        raise Unavailable(f"The run {run_id} can't be read ({error}); mend it by hand.", code="item_unreadable") from error


def last_run(kind: RunKind) -> tuple[str, int]:
    """Id of the run of this kind that was ordered last, and how many were before (``""``, 0: none)."""
    item = get_item(SandboxItem, *models.last_run_key(kind))
    return ("", 0) if item is None else (item.run_id or "", int(item.version or 0))


def insert_run(run: Run, *, after: int, draft: Draft, actor: Actor, now: datetime) -> None:
    """Write a new run, the next of its kind ``after`` so many, and its event on the chain of the pool."""
    pk, sk = models.last_run_key(run.kind)
    unchanged: Condition = SandboxItem.version == after if after else SandboxItem.pk.does_not_exist()
    pointer = Upsert(SandboxItem, pk, [SandboxItem.run_id.set(run.run_id), SandboxItem.version.set(after + 1)], unchanged, range_key=sk)
    item = SandboxItem(
        *models.run_key(run.run_id),
        run_id=run.run_id,
        kind=run.kind.value,
        state=run.state.value,
        ordered_by=run.ordered_by,
        ordered_at=to_epoch(run.ordered_at),
        due=RunDue.PERFORM.value,
        due_at=precise(run.ordered_at),
        version=run.version,
    )
    try:
        transact([Insert(item), pointer, *pool_steps((), draft=draft, actor=actor, now=now)])
    except ConditionFailed as error:
        raise Overtaken from error


def begin_run(run: Run, *, holder: str, until: datetime, now: datetime) -> Run:
    """Give the run, as it was read, to this performer alone until ``until``."""
    begun = dataclasses.replace(
        run, state=RunState.RUNNING, started_at=whole_second(now), held_by=holder, held_until=until, version=run.version + 1
    )
    actions = [
        SandboxItem.state.set(begun.state.value),
        SandboxItem.started_at.set(to_epoch(now)),
        SandboxItem.held_by.set(holder),
        SandboxItem.held_until.set(precise(until)),
        # A performer that dies is followed by another when its hold is over.
        SandboxItem.due_at.set(precise(until)),
    ]
    return _changed(run, begun, actions)


def end_run(run: Run, *, forget_at: datetime) -> Run:
    """End the run, as it was begun, as ``run`` says; it is remembered until ``forget_at``."""
    assert run.ended_at is not None
    ended = dataclasses.replace(run, held_by="", held_until=None, version=run.version + 1)
    actions = [
        SandboxItem.state.set(ended.state.value),
        SandboxItem.ended_at.set(to_epoch(run.ended_at)),
        SandboxItem.report.set(json.dumps(dict(run.report))),
        SandboxItem.error.set(run.error) if run.error else SandboxItem.error.remove(),
        SandboxItem.held_by.remove(),
        SandboxItem.held_until.remove(),
        SandboxItem.due.set(RunDue.FORGET.value),
        SandboxItem.due_at.set(precise(forget_at)),
    ]
    return _changed(run, ended, actions)


def remove_run(run: Run) -> None:
    """It is not remembered any more; one that is gone already, or has changed, is left alone."""
    pk, sk = models.run_key(run.run_id)
    try:
        transact([Remove(SandboxItem, pk, SandboxItem.version == run.version, range_key=sk)])
    except ConditionFailed:
        return


def page_runs(
    due: RunDue,
    *,
    until: datetime | None = None,
    beyond: datetime | None = None,
    cursor: str | None,
    limit: int,
    newest_first: bool = False,
) -> Page[Run]:
    """Open runs (``PERFORM``) or ended ones (``FORGET``), by when something must be done with them; as :func:`page_due`."""
    runs = Listing("sandboxes.runs", SandboxItem, _run_of, SandboxItem.due_index, newest_first=newest_first)
    return runs(due.value, cursor=cursor, limit=limit, where=due_within(until, beyond), bound=beyond is not None)


def _changed(before: Run, after: Run, actions: Sequence[Action]) -> Run:
    pk, sk = models.run_key(before.run_id)
    unchanged = SandboxItem.version == before.version
    try:
        update_one(Change(SandboxItem, pk, [*actions, SandboxItem.version.set(after.version)], unchanged, range_key=sk))
    except ConditionFailed as error:
        raise Overtaken from error
    return after


def _run_of(item: SandboxItem) -> Run:
    return Run(
        run_id=item.run_id or item.pk.partition("#")[2],
        kind=RunKind(item.kind),
        state=RunState(item.state),
        ordered_by=item.ordered_by or "",
        ordered_at=from_epoch(item.ordered_at or 0),
        started_at=None if item.started_at is None else from_epoch(item.started_at),
        ended_at=None if item.ended_at is None else from_epoch(item.ended_at),
        report={} if item.report is None else json.loads(item.report),
        error=item.error or "",
        held_by=item.held_by or "",
        held_until=None if item.held_until is None else from_epoch(item.held_until),
        version=int(item.version or 0),
    )
