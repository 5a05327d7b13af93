"""What the portal costs in DynamoDB and in time, on DynamoDB Local: ``make bench``. ``docs/benchmarks.md`` explains the tables.

Exit code 1 when a cost grows with the table, an idle tick takes more than seven requests, or the picker is slow.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Sequence
from typing import TYPE_CHECKING

from benchmarks import meter
from benchmarks.installation import installation, set_twin

if TYPE_CHECKING:
    from benchmarks.meter import Measured

_ALLOWED_GROWTH = 1.1
_IDLE_TICK_REQUESTS = 7
_PICKER_MS = 300.0


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--small", type=int, default=10_000, help="requests in the table at first (default: %(default)s)")
    parser.add_argument("--large", type=int, default=100_000, help="requests in the table then (default: %(default)s)")
    options = parser.parse_args()
    meter.install()
    with installation(accounts=60, permission_sets=12) as twin_url:
        # What is measured here is DynamoDB; a job's length would only add the same polls to both sizes.
        set_twin(twin_url, job_seconds=0.1)
        problems = [*_costs(options.small, options.large), *_bare(), *_picker()]
    for problem in problems:
        print(f"NOT GOOD ENOUGH: {problem}")
    return 1 if problems else 0


def _costs(small: int, large: int) -> list[str]:
    from accessportal.kernel.clock import SystemClock
    from benchmarks import costs, filling

    accounts = _accounts()
    patterns = filling.make_patterns(account=accounts[0], busy=costs.BUSY, approver=costs.BOB)
    found: dict[int, dict[str, Measured]] = {}
    filled = 0
    for size in (small, large):
        began = time.monotonic()
        filling.fill(patterns, start=filled, count=size - filled, busy=costs.BUSY.name, accounts=accounts[:20], now=SystemClock().now())
        print(f"{size:,} requests in the table; filling took {time.monotonic() - began:.0f} s", flush=True)
        filled = size
        found[size] = dict(costs.measure_all(accounts=accounts))
    return _told(found[small], found[large], small, large)


def _told(before: dict[str, Measured], after: dict[str, Measured], small: int, large: int) -> list[str]:
    print(f"\nDynamoDB at {small:,} and {large:,} requests: round trips, read units, write units, milliseconds (medians)\n")
    problems = meter.show_growth(before, after, most=_ALLOWED_GROWTH)
    for name, one in after.items():
        if name.startswith("tick") and one.round_trips > _IDLE_TICK_REQUESTS:
            problems.append(f"{name} takes {one.round_trips:g} requests; at most {_IDLE_TICK_REQUESTS} are allowed")
    return problems


def _bare() -> Sequence[str]:
    from benchmarks import bare

    print("\nThe portal against the bare boto3 calls that the action needs, in turns (medians)\n")
    print(f"| {'action':<12} | portal ms | bare ms | bare calls | ratio |")
    print(f"| {'-' * 12} | --------: | ------: | ---------: | ----: |")
    for name, one in (("submit", bare.compare_submit(_accounts()[0])), ("queue page", bare.compare_queue())):
        ratio = one.ours_ms / one.bare_ms
        print(f"| {name:<12} | {one.ours_ms:>9.1f} | {one.bare_ms:>7.1f} | {one.bare_calls:>10} | {ratio:>5.2f} |", flush=True)
    return []


def _picker() -> list[str]:
    from benchmarks import picker

    picker.fill_catalog()
    print(f"\nThe picker with {picker.ACCOUNTS:,} accounts and {picker.PERMISSION_SETS} permission sets, through Django: milliseconds\n")
    print(f"| {'address':<22} | {'p50':>6} | {'p99':>6} | {'max':>6} | requests |")
    print(f"| {'-' * 22} | {'-' * 5}: | {'-' * 5}: | {'-' * 5}: | -------: |")
    problems = []
    for name, spans in picker.measure():
        print(f"| {name:<22} | {spans.p50:>6.1f} | {spans.p99:>6.1f} | {spans.longest:>6.1f} | {spans.count:>8} |")
        if spans.p99 > _PICKER_MS:
            problems.append(f"{name} takes {spans.p99:.0f} ms (p99); at most {_PICKER_MS:.0f} ms are allowed")
    return problems


def _accounts() -> list[str]:
    from accessportal.catalog import queries as catalog

    found = catalog.list_accounts(limit=1000).items
    return [one.account_id for one in found if not one.is_management and not one.ou_path.startswith("/Security")]


if __name__ == "__main__":
    sys.exit(main())
