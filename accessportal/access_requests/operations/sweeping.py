"""The sweep that guarantees everything: lapse, expire and carry out what is due, and stay for what is about to be."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor, wait
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from functools import partial

from accessportal.access_requests import policy, store
from accessportal.access_requests.operations import departing
from accessportal.access_requests.operations.deciding import lapse
from accessportal.access_requests.operations.ending import expire
from accessportal.access_requests.operations.working import carry_out
from accessportal.access_requests.states import AccessRequest, Status, TickReport, Work
from accessportal.directory import queries as directory
from accessportal.directory.states import Departure
from accessportal.kernel.actors import system
from accessportal.kernel.clock import Clock
from accessportal.kernel.errors import NoAnswer
from accessportal.kernel.moments import furthest
from accessportal.kernel.pages import as_far
from accessportal.kernel.runs import Failure, Run
from accessportal.store.coordination import claim_watch, leave_watch

TICK = system("tick")
# Ticks come every minute, and half a minute late where a process must be replaced first, so the next one may start 90 s after this
# one; what a tick looks ahead must reach past that. And the work that it begins at its last moment must end before the job is killed
# (150 s, jobs.schedules).
LOOKAHEAD_SECONDS = 95.0
_LOOK_AGAIN_SECONDS = 5.0
# Each spends most of its time waiting for a job: with fewer, the last of many that end together would wait for the first's proof.
_WORKERS = 48
# What is not begun by then is left to the next tick: the job must not be killed in the middle of much.
_LAST_STARTS_SECONDS = 5.0
_SHORTEST_SWEEP_SECONDS = 60.0
_WATCH = "access-ends"
# For an end that is watched for at the earliest, and a minute more.
_LONGEST_WATCH = timedelta(seconds=policy.WATCH_WITHIN_SECONDS + 60)


def tick(*, clock: Clock, lookahead_seconds: float = LOOKAHEAD_SECONDS, workers: int = _WORKERS) -> TickReport:
    """Do what is due (departed, lapsed, over, work), then stay for what comes due within ``lookahead_seconds``. Any number may run at once,
    ``workers`` items at a time (1: in this thread); what the store did not answer for is tried again until the end of the look-ahead. With
    nothing due or coming it makes seven queries."""
    return _sweep(until=clock.now() + timedelta(seconds=lookahead_seconds), is_watcher=False, clock=clock, workers=workers)


def watch_ends(*, until: datetime, clock: Clock) -> TickReport | None:
    """Stay for access that ends before the next tick is sure to look: a tick up to ``until``. ``None`` when another watcher covers that
    time."""
    stay_until = until + timedelta(seconds=60)
    # Where the store does not say who watches, two are better than none.
    with suppress(NoAnswer):
        if not _claim_watch(needed_until=until, until=stay_until, now=clock.now()):
            return None
    return _sweep(until=stay_until, is_watcher=True, clock=clock, workers=_WORKERS)


def _claim_watch(*, needed_until: datetime, until: datetime, now: datetime) -> bool:
    return claim_watch(_WATCH, needed_until=needed_until, until=until, longest=_LONGEST_WATCH, now=now)


def _sweep(*, until: datetime, is_watcher: bool, clock: Clock, workers: int) -> TickReport:
    run = _Run(clock, ThreadPoolExecutor(workers, thread_name_prefix="tick") if workers > 1 else None)
    is_watching = is_watcher
    seconds = max(_SHORTEST_SWEEP_SECONDS, (until - clock.now()).total_seconds() + _LAST_STARTS_SECONDS)
    end_by = time.monotonic() + seconds
    try:
        while True:
            now = clock.now()
            next_at = _start_due(run, now=now, horizon=until)
            if now >= until:
                break
            if next_at is None and not run.in_hand and not run.unanswered:
                if run.takes_another_look():
                    continue
                if not is_watching:
                    break
                # Whoever was told that somebody watches had written its request before: one more look sees it.
                with suppress(NoAnswer):
                    leave_watch(_WATCH, until=until, now=now)
                    is_watching = False
                    continue
            else:
                is_watching = True
                with suppress(NoAnswer):
                    _claim_watch(needed_until=until, until=until, now=now)
            again_at = min(next_at or until, now + timedelta(seconds=_LOOK_AGAIN_SECONDS), until)
            clock.sleep((again_at - now).total_seconds())
    finally:
        run.finish(seconds=end_by - time.monotonic())
    return run.report()


@dataclass
class _Run(Run):
    """One tick under way. Each request is in hand once at a time."""

    clock: Clock
    executor: ThreadPoolExecutor | None
    futures: list[Future[None]] = field(default_factory=list)
    in_hand: set[str] = field(default_factory=set)
    # What the store did not answer for at the latest look, with the words: the next look tries it again.
    unanswered: dict[str, str] = field(default_factory=dict)
    lapsed: list[str] = field(default_factory=list)
    expired: list[str] = field(default_factory=list)
    results: list[AccessRequest] = field(default_factory=list)
    looked_after: set[str] = field(default_factory=set)
    departed: int = 0
    _departed_before: int = 0

    def start(self, item: str, action: Callable[[str], object]) -> None:
        """Do ``action`` on the item in a thread (without any: at once), unless it is in hand."""
        if item in self.in_hand:
            return
        self.in_hand.add(item)
        if self.executor is None:
            self.unit(item, partial(action, item))
        else:
            self.futures.append(self.executor.submit(self.unit, item, partial(action, item)))

    def finish(self, *, seconds: float) -> None:
        """Wait for all that began within so many seconds; what has not begun by then is left to the next tick."""
        if self.executor is None:
            return
        wait(self.futures, timeout=max(0.0, seconds))
        self.executor.shutdown(cancel_futures=True)
        for future in self.futures:
            if not future.cancelled():
                future.result()

    def unit(self, item: str, action: Callable[[], object]) -> None:
        try:
            super().unit(item, action)
        finally:
            self.in_hand.discard(item)

    def fail(self, item: str, error: Exception) -> None:
        if isinstance(error, NoAnswer):
            self.unanswered[item] = error.message
        else:
            super().fail(item, error)

    def look_after(self, departures: Sequence[Departure], _mark: str) -> None:
        """What hung on them is ended, or the failure told."""
        looked = departing.Look(TICK, self.clock)
        looked.look_after(departures)
        self.departed += len(looked.ended) + len(looked.cancelled)
        self.failures += looked.failures

    def takes_another_look(self) -> bool:
        """Whether departures have made work since this was asked last."""
        before, self._departed_before = self._departed_before, self.departed
        return self.departed > before

    def lapse(self, request_id: str) -> None:
        lapse(request_id=request_id, actor=TICK, now=self.clock.now())
        self.lapsed.append(request_id)

    def expire(self, request_id: str) -> None:
        expire(request_id=request_id, actor=TICK, now=self.clock.now())
        self.expired.append(request_id)
        self.carry_out(request_id)

    def carry_out(self, request_id: str) -> None:
        self.results.append(carry_out(request_id=request_id, clock=self.clock))

    def report(self) -> TickReport:
        latest = {request.request_id: request for request in self.results}.values()
        return TickReport(
            lapsed=len(self.lapsed),
            expired=len(self.expired),
            granted=sum(request.is_granted for request in latest),
            revoked=sum(request.status is Status.REVOKED for request in latest),
            departed=self.departed,
            waiting=sum(request.work is not None for request in latest),
            failures=(*self.failed, *(Failure(what, words) for what, words in self.unanswered.items())),
        )


def _start_due(run: _Run, *, now: datetime, horizon: datetime) -> datetime | None:
    """Start everything due ``now`` and return the next moment until ``horizon`` at which something comes due, if any. The others come all
    the same when an item can't be read, or the store does not answer for one list."""
    run.unanswered.clear()
    past, beyond = run.pass_over, furthest(now, longest=policy.LONGEST_WAIT)
    _start_looks(run)
    coming: list[datetime] = []
    for request in as_far(store.every_in(Status.PENDING, until=now, past=past), told=partial(run.fail, "waiting requests")):
        run.start(request.request_id, run.lapse)
    for request in as_far(store.every_in(Status.ACTIVE, until=horizon, past=past), told=partial(run.fail, "active requests")):
        if request.is_over(now):
            if request.work is not Work.REVOKE:
                run.start(request.request_id, run.expire)
        else:
            coming.append(request.expires_at)
    for work in (Work.REVOKE, Work.GRANT):
        for request in as_far(store.every_work(work, until=horizon, past=past), told=partial(run.fail, f"work {work}")):
            assert request.work_due_at is not None
            if request.work_due_at <= now:
                run.start(request.request_id, run.carry_out)
            else:
                coming.append(request.work_due_at)
        # Put off by a clock that was wrong, so due.
        for request in as_far(store.every_work_ahead(work, beyond=beyond, past=past), told=partial(run.fail, f"work {work} ahead")):
            run.start(request.request_id, run.carry_out)
    return min(coming, default=None)


def _start_looks(run: _Run) -> None:
    """Each departure as it stands is looked after once in a run."""
    listed = as_far(directory.list_departures(past=run.pass_over), told=partial(run.fail, "departures"))
    new = [departure for departure in listed if departure.token not in run.looked_after]
    run.looked_after.update(departure.token for departure in new)
    for some in departing.together(new):
        run.start(some[0].token, partial(run.look_after, some))
