"""How late access is taken back: many accesses end within some minutes, with default settings, worked on as in production.

    python tools/dynamodb_local.py python -m benchmarks.lateness --minutes 10

Worker processes take tasks from one queue, as django-q2's do; a tick is queued every minute, up to 30 s late, as its scheduler
does. The twin answers as IAM Identity Center: jobs of two seconds, at most 20 calls a second, 10 open creations.
Exit code 1 when fewer than 99 % of the deletions were sent within 5 s of the end, or anything is left.
"""

from __future__ import annotations

import argparse
import multiprocessing
import queue
import random
import statistics
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any

from benchmarks.installation import installation, join

if TYPE_CHECKING:
    from accessportal.access_requests.states import AccessRequest

ALLOWED_SECONDS = 5.0
WANTED_SHARE = 0.99
# As in accessportal.settings: four workers; and one minute between ticks, each up to half a minute late.
_WORKERS = 4
_TICK_SECONDS = 60.0
_TICK_LATE_SECONDS = 30.0
_LEAD_SECONDS = 20.0
_PATIENCE_SECONDS = 180.0
# Three permission sets in each account.
_SETS = ("PowerUserAccess", "ReadOnlyAccess", "ViewOnlyAccess")

Tasks = Any


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--count", type=int, default=300, help="how many accesses end (default: %(default)s)")
    parser.add_argument("--minutes", type=float, default=10, help="within how many minutes they end (default: %(default)s)")
    parser.add_argument("--seed", type=int, default=1, help="of the ends and the ticks' lateness (default: %(default)s)")
    options = parser.parse_args()
    with installation(accounts=options.count // 3 + 40, permission_sets=12):
        return _measure(options.count, options.minutes * 60, random.Random(options.seed))


def _measure(count: int, within_seconds: float, chance: random.Random) -> int:
    began = datetime.now(UTC)
    # Six calls to Identity Center a grant, at 18 a second, before the first end; and no request is for less than a minute.
    first_end = began + timedelta(seconds=max(75, count * 0.45) + _LEAD_SECONDS)
    ends = sorted(first_end + timedelta(seconds=chance.uniform(0, within_seconds)) for _ in range(count))
    requests = _ask(ends)
    _grant_all(requests)
    print(f"{count} granted after {(datetime.now(UTC) - began).total_seconds():.0f} s; they end from {first_end:%H:%M:%S} on", flush=True)
    with _workers() as tasks:
        _run_schedule(tasks, until=ends[-1] + timedelta(seconds=_PATIENCE_SECONDS), requests=requests, chance=chance)
    return _report(requests, within_seconds)


def _ask(ends: list[datetime]) -> list[str]:
    """One request for each end, each for an assignment of its own."""
    from accessportal.access_requests import operations
    from accessportal.catalog import queries as catalog
    from accessportal.kernel.actors import person

    accounts = [one for one in catalog.list_accounts(limit=1000).items if not one.is_management and not one.ou_path.startswith("/Security")]
    targets = [(account.account_id, name) for account in accounts for name in _SETS]
    found = []
    for number, (end, (account, permission_set)) in enumerate(zip(ends, targets, strict=False)):
        now = datetime.now(UTC)
        request = operations.submit(
            kind="aws_account",
            subject_id=None,
            target={"account": account, "permission_set": permission_set},
            duration_seconds=round((end - now).total_seconds()),
            reason="Benchmark",
            ticket_id="",
            submission_id=f"lateness-{number}",
            actor=person(f"alice{number % 10}@example.com"),
            now=now,
        )
        found.append(request.request_id)
    return found


def _grant_all(requests: list[str]) -> None:
    from accessportal.access_requests import operations
    from accessportal.kernel.clock import SystemClock

    while not all(_get(one).is_granted for one in requests):
        operations.tick(clock=SystemClock(), lookahead_seconds=0)
        time.sleep(1)


def _run_schedule(tasks: Tasks, *, until: datetime, requests: list[str], chance: random.Random) -> None:
    """Queue ticks as the scheduler would, until nothing is left or ``until``."""
    minute = time.monotonic()
    former: float | None = None
    gaps = []
    while datetime.now(UTC) < until:
        time.sleep(max(0.0, minute + chance.uniform(0, _TICK_LATE_SECONDS) - time.monotonic()))
        tasks.put("tick")
        if former is not None:
            gaps.append(time.monotonic() - former)
        former = time.monotonic()
        minute += _TICK_SECONDS
        time.sleep(max(0.0, minute - time.monotonic()))
        if all(_get(one).revoked_at for one in reversed(requests)):
            break
    print(f"ticks came {', '.join(f'{gap:.0f}' for gap in gaps)} s after the one before")


@contextmanager
def _workers() -> Iterator[Tasks]:
    context = multiprocessing.get_context("spawn")
    tasks: Tasks = context.Queue()
    processes = [context.Process(target=_work, args=(tasks,), daemon=True) for _ in range(_WORKERS)]
    for process in processes:
        process.start()
    try:
        yield tasks
    finally:
        for _ in processes:
            tasks.put("stop")
        for process in processes:
            process.join(timeout=150)
            process.kill()


def _work(tasks: Tasks) -> None:
    join()
    from accessportal.access_requests import operations
    from accessportal.kernel.clock import SystemClock

    while True:
        try:
            task = tasks.get(timeout=_PATIENCE_SECONDS)
        except queue.Empty:
            return
        if task == "stop":
            return
        report = operations.tick(clock=SystemClock())
        for failure in report.failures:
            print(f"failed: {failure.item}: {failure.error}", file=sys.stderr, flush=True)


def _report(requests: list[str], within_seconds: float) -> int:
    found = [_get(one) for one in requests]
    left = [one for one in found if one.revoked_at is None]
    late = sorted(_lateness(one) for one in found if one.revoked_at is not None)
    delayed = sum(event == "request.work_delayed" for one in found for event in _events(one))
    print(f"{len(late)} of {len(found)} taken back with proof, ended within {within_seconds / 60:g} min; delayed by errors: {delayed}")
    if not late:
        return 1
    cuts = statistics.quantiles(late, n=100, method="inclusive")
    share = sum(seconds <= ALLOWED_SECONDS for seconds in late) / len(found)
    print(
        f"from the end to the deletion being sent: p50 {cuts[49]:.2f} s, p95 {cuts[94]:.2f} s, p99 {cuts[98]:.2f} s, max {late[-1]:.2f} s"
    )
    print(f"within {ALLOWED_SECONDS:g} s: {share:.1%} (wanted: {WANTED_SHARE:.0%})")
    for one in sorted((one for one in found if one.revoked_at), key=_lateness)[-5:]:
        print(f"  latest: {_lateness(one):.2f} s, ended {one.expires_at:%H:%M:%S}, {one.receipts[-1].job_status}")
    return 0 if share >= WANTED_SHARE and not left else 1


def _lateness(request: AccessRequest) -> float:
    seconds = request.receipts[-1].lateness_seconds
    assert seconds is not None
    return seconds


def _events(request: AccessRequest) -> list[str]:
    from accessportal.access_requests import queries

    return [event.action for event in queries.history(request=request)]


def _get(request_id: str) -> AccessRequest:
    from accessportal.access_requests import queries
    from accessportal.kernel.actors import system
    from accessportal.kernel.clock import SystemClock

    return queries.get(request_id=request_id, actor=system("bench"), now=SystemClock().now())


if __name__ == "__main__":
    sys.exit(main())
