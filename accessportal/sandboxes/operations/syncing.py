"""Comparing the pool with the provider's whole list: new ones in, missing ones stale at the second look, and a brake."""

from __future__ import annotations

import dataclasses
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from functools import partial

from accessportal.audit.states import Draft
from accessportal.kernel.actors import Actor, system
from accessportal.kernel.brakes import MOST_SHARE
from accessportal.kernel.clock import Clock, to_epoch, whole_second
from accessportal.kernel.errors import Conflict, Unavailable
from accessportal.kernel.moments import furthest, is_recent
from accessportal.kernel.runs import Failure, Run
from accessportal.sandboxes import effects, policy
from accessportal.sandboxes.config import current
from accessportal.sandboxes.operations.handing import make_free
from accessportal.sandboxes.operations.others import listed_as_free, mended
from accessportal.sandboxes.operations.shared import SCOPE, leaving_free_list, told, unheld, unreadable_failure, until_written
from accessportal.sandboxes.operations.tending import add, sandbox_id_for
from accessportal.sandboxes.states import (
    POOL_ENTITY,
    LastSync,
    Sandbox,
    Stats,
    Status,
    SyncPlan,
    SyncStopped,
    Unreadable,
)
from accessportal.sandboxes.store import free_list, pages, pool, rows
from accessportal.upstream.provider import Provider, UpstreamSandbox

SYNC = system("sync_sandboxes")
# ``last_synced`` of a sandbox that was seen is written anew only this often: a write for each row at each look would cost more
# than all lending together.
_SEEN_EVERY = timedelta(hours=1)
# The job is killed then (jobs.schedules).
_LONGEST = timedelta(minutes=15)
# Whom it concerns, and what is done.
_Unit = tuple[str, Callable[[], object]]


def sync(*, provider: Provider, apply: bool, most_share: float = MOST_SHARE, actor: Actor = SYNC, clock: Clock) -> SyncPlan:
    """Hold the pool against the provider's whole list: new ones in, missing ones stale at the second look, rows of other programs caught up
    with. Without ``apply`` nothing changes. ``SyncStopped`` when more than ``most_share`` would go stale: then only what the list shows was
    taken from it."""
    began = clock.now()
    try:
        listed = effects.read_list(provider)
    except Unavailable as error:
        if apply:
            _go_on_without(error, actor, clock)
        raise
    rows, broken = _every_row()
    # A row that can't be read stands for its sandbox all the same: a second row for it would have it lent twice.
    known = {row.external_id for row in rows} | {row.external_id for row in broken}
    if listed.keys() - known:
        # A row that changed its status while the lists were read may have been in neither: only what two looks lack is new.
        known |= {row.external_id for row in pages.every_row()}
    sorted_rows = _Sorted(rows, listed, began)
    failures = [unreadable_failure(one) for one in broken] + _unreadable_lines()
    plan = sorted_rows.plan(unknown=sorted(listed.keys() - known), failures=failures)
    reason = policy.brake(plan, most_share)
    if reason:
        if apply:
            failures += _each(sorted_rows.always(actor, clock))
            _keep(LastSync(began, plan.listed, reason, _shortest_lab(rows)), plan, actor=actor, now=clock.now())
            _keep_counts(*(_every_row() if plan.to_mend else (rows, broken)), now=clock.now())
        plan = dataclasses.replace(plan, failures=tuple(failures))
        raise SyncStopped(f"{reason} Nothing of it was carried out. If that is right: sync_sandboxes --most-share 1", plan=plan)
    if not apply:
        return plan
    failures += _each(sorted_rows.always(actor, clock))
    failures += _carry_out(sorted_rows, plan, listed, provider, actor, clock)
    changes_statuses = plan.new or plan.seen_again or plan.going_stale or plan.not_ready or plan.to_mend
    rows_now, broken = _every_row() if changes_statuses else (rows, broken)
    # New to us, and yet it could not come in: its row may have a status that nobody knows.
    broken += [Unreadable(sandbox_id_for(one.item), one.item) for one in failures if one.item in listed.keys() - known]
    _keep(LastSync(began, plan.listed, "", _shortest_lab(rows_now)), plan, actor=actor, now=clock.now())
    _keep_counts(rows_now, broken, now=clock.now())
    return dataclasses.replace(plan, failures=tuple(failures), is_applied=True)


def count(*, clock: Clock) -> Stats:
    """How many sandboxes are in each status, read from the index page by page and kept for the pages to show."""
    return _keep_counts(*_every_row(), now=clock.now())


def _go_on_without(error: Unavailable, actor: Actor, clock: Clock) -> None:
    """Other programs are caught up with and the counts over time go on while the provider is down: neither needs its list."""
    rows, broken = _every_row()
    to_mend = _to_mend(rows)
    failures = _each(_mendings(to_mend, actor, clock))
    _keep_counts(*(_every_row() if to_mend else (rows, broken)), now=clock.now())
    if failures:
        words = f"{error.message} {len(failures)} rows that other programs changed could not be caught up with: {failures[0].error}"
        raise Unavailable(words, code=error.code) from error


def _keep_counts(rows: Collection[Sandbox], broken: Collection[Unreadable], *, now: datetime) -> Stats:
    counted = Counter(row.status for row in rows)
    stats = Stats(now, {status: counted[status] for status in Status}, tuple(broken))
    pool.keep_counts(stats)
    pool.add_count(stats)
    return stats


@dataclass
class _Sorted:
    """The rows by what the list means for them."""

    rows: Collection[Sandbox]
    listed: Mapping[str, UpstreamSandbox]
    began: datetime
    to_note: list[Sandbox] = field(default_factory=list)
    seen_again: list[Sandbox] = field(default_factory=list)
    missing: list[Sandbox] = field(default_factory=list)
    going_stale: list[Sandbox] = field(default_factory=list)
    not_ready: list[Sandbox] = field(default_factory=list)
    lent_but_missing: list[Sandbox] = field(default_factory=list)
    to_mend: list[Sandbox] = field(default_factory=list)
    seen: int = 0

    def __post_init__(self) -> None:
        self.to_mend = _to_mend(self.rows)
        for row in self.rows:
            if row.external_id in self.listed:
                self._sort_listed(row, self.listed[row.external_id])
            elif self._stood_still(row):
                self._sort_missing(row)

    def _stood_still(self, row: Sandbox) -> bool:
        """What changed since the list began, as far as a sync lasts, may have been listed as it was before."""
        return row.updated_at < whole_second(self.began) or row.updated_at > furthest(self.began, longest=_LONGEST)

    def _sort_listed(self, row: Sandbox, found: UpstreamSandbox) -> None:
        self.seen += 1
        if row.status is Status.STALE and found.is_ready:
            self.seen_again.append(row)
            return
        if row.status is Status.AVAILABLE and not found.is_ready and self._stood_still(row):
            self.not_ready.append(row)
        is_new_life = row.status is Status.AVAILABLE and not row.generation and bool(found.generation) and self._stood_still(row)
        was_seen = row.last_synced is not None and is_recent(row.last_synced, now=self.began, within=_SEEN_EVERY)
        if row.missing_since is not None or not was_seen or is_new_life:
            self.to_note.append(row)

    def _sort_missing(self, row: Sandbox) -> None:
        if row.status is Status.ALLOCATED:
            self.lent_but_missing.append(row)
        elif row.status is Status.AVAILABLE and policy.is_missed_anew(row, self.began):
            self.missing.append(row)
        elif row.status is Status.AVAILABLE and policy.is_second_sight(row, self.began, gap_seconds=current().sync_gap_seconds):
            self.going_stale.append(row)

    def always(self, actor: Actor, clock: Clock) -> list[_Unit]:
        """What is done also when the brake holds: only what is missing may be wrong in a list, and not what it shows."""
        return _mendings(self.to_mend, actor, clock) + [
            (row.sandbox_id, partial(_note_seen, row, self.listed[row.external_id].generation, clock)) for row in self.to_note
        ]

    def plan(self, *, unknown: Collection[str], failures: Collection[Failure]) -> SyncPlan:
        return SyncPlan(
            listed=len(self.listed),
            known=len(self.rows),
            new=tuple(one for one in unknown if self.listed[one].is_ready),
            # The provider is still making it: cleaning it would delete what nobody ever used.
            new_not_ready=tuple(one for one in unknown if not self.listed[one].is_ready),
            seen=self.seen,
            seen_again=_ids(self.seen_again),
            missing=_ids(self.missing),
            going_stale=_ids(self.going_stale),
            not_ready=_ids(self.not_ready),
            lent_but_missing=_ids(self.lent_but_missing),
            to_mend=_ids(self.to_mend),
            failures=tuple(failures),
        )


def _carry_out(
    rows: _Sorted, plan: SyncPlan, listed: Mapping[str, UpstreamSandbox], provider: Provider, actor: Actor, clock: Clock
) -> list[Failure]:
    units: list[_Unit] = []
    units += [(external_id, partial(add_listed, listed[external_id], actor, clock)) for external_id in plan.new]
    units += [(row.sandbox_id, partial(_see_again, row, listed[row.external_id].generation, actor, clock)) for row in rows.seen_again]
    units += [(row.sandbox_id, partial(_note_missing, row, clock)) for row in [*rows.missing, *rows.lent_but_missing]]
    units += [(row.sandbox_id, partial(_go_stale, row, actor, clock)) for row in rows.going_stale]
    units += [(row.sandbox_id, partial(_hold_back, row, provider, actor, clock)) for row in rows.not_ready]
    return _each(units)


def _to_mend(rows: Iterable[Sandbox]) -> list[Sandbox]:
    return [row for row in rows if policy.mending_of(row) is not policy.Mending.NOTHING]


def _mendings(rows: Iterable[Sandbox], actor: Actor, clock: Clock) -> list[_Unit]:
    return [(row.sandbox_id, partial(_mend, row, actor, clock)) for row in rows]


class _Sync(Run):
    # It was lent, cleaned or changed at this moment: the next look decides.
    passes = (rows.Overtaken,)


def _each(units: Iterable[_Unit]) -> list[Failure]:
    run = _Sync()
    for name, unit in units:
        run.unit(name, unit)
    return run.failures


def add_listed(found: UpstreamSandbox, actor: Actor, clock: Clock) -> None:
    """What the provider lists as ready is in the pool, by this sync or another."""
    try:
        add(
            external_id=found.external_id,
            name=found.name,
            lab_duration_hours=found.lab_duration_hours,
            generation=found.generation,
            actor=actor,
            now=clock.now(),
        )
    except Conflict:
        # Another sync was faster; or its row has a status that nobody knows, stands in no list, and is named as a failure.
        rows.get(sandbox_id_for(found.external_id))


def _mend(row: Sandbox, actor: Actor, clock: Clock) -> None:
    fresh, now = rows.get(row.sandbox_id), clock.now()
    if fresh is None:
        return
    if policy.is_unlisted(fresh):
        after, draft = listed_as_free(fresh)
        make_free(after, partial(rows.change, fresh, after, draft=draft, actor=actor, now=now), actor=actor, now=now)
    else:
        mended(fresh, actor=actor, now=now)


def _note_seen(row: Sandbox, generation: str, clock: Clock) -> None:
    """Which life a free one is in is noted once: another one later tells of a hand-over that our tables don't know."""
    known = row.generation or (generation if row.status is Status.AVAILABLE else "")
    rows.note(row, dataclasses.replace(row, last_synced=clock.now(), missing_since=None, generation=known))


def _note_missing(row: Sandbox, clock: Clock) -> None:
    if policy.is_missed_anew(row, clock.now()):
        rows.note(row, dataclasses.replace(row, missing_since=clock.now()))


def _go_stale(row: Sandbox, actor: Actor, clock: Clock) -> None:
    assert row.missing_since is not None
    after = dataclasses.replace(unheld(row, Status.STALE), missing_since=row.missing_since)
    draft = told("sandbox.stale", after, status=after.status.value, missing_since=to_epoch(row.missing_since))
    rows.change(row, after, draft=draft, actor=actor, now=clock.now(), free_step=leaving_free_list(row))


def _hold_back(row: Sandbox, provider: Provider, actor: Actor, clock: Clock) -> None:
    """Stale without ``missing_since``: the provider has it, but not ready to be lent."""
    if not effects.is_surely_unready(provider, row):
        return
    after = unheld(row, Status.STALE)
    draft = told("sandbox.stale", after, status=after.status.value)
    rows.change(row, after, draft=draft, actor=actor, now=clock.now(), free_step=leaving_free_list(row))


def _see_again(row: Sandbox, generation: str, actor: Actor, clock: Clock) -> None:
    now = clock.now()
    after = dataclasses.replace(unheld(row, Status.AVAILABLE), last_synced=whole_second(now), generation=generation)
    draft = told("sandbox.seen_again", after, status=after.status.value)
    make_free(after, partial(rows.change, row, after, draft=draft, actor=actor, now=now), actor=actor, now=now)


def _keep(sync: LastSync, plan: SyncPlan, *, actor: Actor, now: datetime) -> None:
    draft = None
    if sync.stopped:
        data = {"reason": sync.stopped, "listed": plan.listed, "known": plan.known, "going_stale": len(plan.going_stale)}
        draft = Draft("sandbox.sync_stopped", POOL_ENTITY, data, scope=SCOPE)
    until_written(partial(pool.keep_sync, sync, draft=draft, actor=actor, now=now))


def _shortest_lab(rows: Iterable[Sandbox]) -> int:
    """For how long each of them can be lent, in seconds; 0: there is none."""
    return min((int(row.lab_duration_hours * 3600) for row in rows if row.lab_duration_hours > 0), default=0)


def _every_row() -> tuple[list[Sandbox], list[Unreadable]]:
    """Every sandbox of the pool by the index, each once, and those that can't be read."""
    found: dict[str, Sandbox] = {}
    broken = []
    for one in pages.every_row():
        if isinstance(one, Sandbox):
            found[one.sandbox_id] = one
        else:
            broken.append(one)
    return list(found.values()), broken


def _unreadable_lines() -> list[Failure]:
    """Takes pass over them, so nobody else would name them."""
    run = _Sync()
    for _ in free_list.every_line(past=run.pass_over):
        continue
    return run.failures


def _ids(rows: Iterable[Sandbox]) -> tuple[str, ...]:
    return tuple(row.sandbox_id for row in rows)
