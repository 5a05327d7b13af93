"""What approvals and relationships cost in DynamoDB, at 1,000 and at 100,000 records, and of a scope's deletion that is killed:

    python tools/dynamodb_local.py python -m benchmarks.authz

Exit code 1 when a cost grows with the table, a check takes more than 1.5 times as long as a bare GetItem, or the deletion leaves or takes
too much.
"""

from __future__ import annotations

import argparse
import os
import signal
import statistics
import subprocess
import sys
import time
import uuid
from collections.abc import Callable, Iterator
from dataclasses import replace
from datetime import timedelta
from typing import Any

import boto3

from accessportal.audit import queries as audit
from accessportal.authz import operations, queries
from accessportal.authz.queries import APPROVALS, RELATIONSHIPS, Asked, caller_of, read_scope
from accessportal.authz.states import Approval, Relationship, RelationType, Scope, ScopeState
from accessportal.authz.store import key_of
from accessportal.kernel.actors import system
from accessportal.kernel.clock import SystemClock, to_epoch, whole_second
from accessportal.store.base import StoreSettings, configure, current_settings, registered_models
from accessportal.store.cursors import configure_cursors
from accessportal.store.tables import ensure_table
from benchmarks import meter
from benchmarks.installation import REGION
from benchmarks.meter import Measured, measured
from benchmarks.sandboxes import write_all

CLOCK = SystemClock()
BENCH = caller_of(system("bench"))
ACME, CORP, OTHERS, DOOMED = map(read_scope, ("tenant:acme", "tenant:acme-corp", "tenant:others", "tenant:doomed"))
NEIGHBOUR = read_scope("tenant:doomed-corp")
_TIMES = 15
_TURNS = 300
_KILLS = 5
_MOST_GROWTH = 1.1
_MOST_OF_BARE = 1.5


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--small", type=int, default=1_000, help="records in the table at first (default: %(default)s)")
    parser.add_argument("--large", type=int, default=100_000, help="records in the table then (default: %(default)s)")
    parser.add_argument("--deleted", type=int, default=20_000, help="records of the scope that is deleted (default: %(default)s)")
    parser.add_argument("--go-on", default="", metavar="PREFIX", help=argparse.SUPPRESS)
    options = parser.parse_args()
    os.environ.update(AWS_ACCESS_KEY_ID="bench", AWS_SECRET_ACCESS_KEY="bench")
    if options.go_on:
        _configure(options.go_on)
        operations.carry_out_deletions(actor=system("delete_scopes"), clock=CLOCK, limit_seconds=3_600)
        return 0
    meter.install()
    _configure(f"bench-{uuid.uuid4().hex[:8]}-")
    for model in registered_models():
        ensure_table(model, clock=CLOCK)
    problems = [*_growth(options.small, options.large), *_against_bare(), *_deletion(options.deleted)]
    for problem in problems:
        print(f"NOT GOOD ENOUGH: {problem}")
    return 1 if problems else 0


def _configure(prefix: str) -> None:
    configure(StoreSettings(table_prefix=prefix, region=REGION, read_timeout_seconds=60, reads_side_by_side=8))
    configure_cursors("bench")


def _growth(small: int, large: int) -> list[str]:
    _add_chain()
    found: dict[int, dict[str, Measured]] = {}
    filled = 0
    for size in (small, large):
        _fill(OTHERS, range(filled, size))
        filled, found[size] = size, dict(_measure_all())
    print(f"\nApprovals at {small:,} and {large:,} records: round trips, units, milliseconds (medians)\n")
    return meter.show_growth(found[small], found[large], most=_MOST_GROWTH)


def _measure_all() -> Iterator[tuple[str, Measured]]:
    mark = uuid.uuid4().hex[:6]
    names = [(f"bot-{mark}-{number}", "doc", "GET") for number in range(_TIMES)]
    given: Any = {"caller": BENCH, "now": CLOCK.now()}
    yield "grant", measured([lambda one=one: _grant(ACME, one) for one in names])  # type: ignore[misc]
    yield "check, yes", measured([lambda one=one: _check(one) for one in names])  # type: ignore[misc]
    yield "check, no", measured([lambda one=one: _check((one[0], "doc", "PUT")) for one in names])  # type: ignore[misc]
    yield "chain of 4", measured([_chain] * _TIMES)
    many = [Asked(APPROVALS, ACME, (*names[number % _TIMES][:2], f"GET{number}")) for number in range(100)]
    yield "batch of 100", measured([lambda: queries.check_many(many, caller=BENCH, clock=CLOCK)] * _TIMES)
    first: Any = {"cursor": None, "limit": 15, **given}
    yield "list, an identity's", measured([lambda: queries.list_of_holder(APPROVALS, OTHERS, "bot-1", **first)] * _TIMES)
    yield "list, who may", measured([lambda: queries.list_of_target(APPROVALS, ACME, ("doc", "GET"), **first)] * _TIMES)
    yield "list, a scope's page", measured([lambda: queries.list_in_scope(APPROVALS, OTHERS, **first)] * _TIMES)
    yield "extend", measured([lambda one=one: _extend(one) for one in names])  # type: ignore[misc]
    yield "revoke", measured([lambda one=one: operations.revoke(APPROVALS, ACME, one, **given) for one in names])  # type: ignore[misc]
    yield "sweep, nothing over", measured([_sweep] * 3)
    _fill(CORP, range(10), seconds=-60, identity=f"over-{mark}")
    yield "sweep, 10 over", measured([_sweep])


def _grant(scope: Scope, names: tuple[str, str, str]) -> None:
    wanted = Approval(scope, *names, "bench", CLOCK.now())
    operations.grant(APPROVALS, wanted, ttl_seconds=86_400, caller=BENCH, now=CLOCK.now())


def _check(names: tuple[str, str, str]) -> bool:
    return queries.check(APPROVALS, ACME, names, caller=BENCH, clock=CLOCK).is_allowed


def _extend(names: tuple[str, str, str]) -> None:
    operations.extend(APPROVALS, ACME, names, ttl_seconds=7_200, caller=BENCH, now=CLOCK.now())


def _add_chain() -> None:
    for number in range(4):
        link = Relationship(ACME, f"node-{number}", "trusts", f"node-{number + 1}", RelationType.TRUST, "bench", CLOCK.now())
        operations.grant(RELATIONSHIPS, link, ttl_seconds=86_400, caller=BENCH, now=CLOCK.now())


def _chain() -> None:
    assert len(queries.check_chain(ACME, ("node-0", "trusts", "node-4"), caller=BENCH, clock=CLOCK).by) == 4


def _sweep() -> None:
    report = operations.sweep(actor=system("sweep_authz"), clock=CLOCK, workers=1)
    assert not report.failures, report.failures[:3]


def _fill(scope: Scope, numbers: range, *, seconds: int = 86_400, identity: str = "bot") -> None:
    """Items as grants write them, without their events."""
    now = whole_second(CLOCK.now())
    ends_at = now + timedelta(seconds=seconds)
    pattern = Approval(
        scope, identity, "doc", "GET", "bench", now, ends_at, abs(seconds), held_until={"direct": to_epoch(ends_at)}, version=1
    )
    records = (replace(pattern, identity=f"{identity}-{number}", audit_head="x") for number in numbers)
    items = (APPROVALS.records.insertion(record).item.serialize() for record in records)
    write_all(_client(), _table(), iter(items))


def _against_bare() -> list[str]:
    names = ("bare", "doc", "GET")
    _grant(ACME, names)
    client, table = _client(), _table()
    pk, sk = key_of(ACME, names)

    def bare() -> None:
        client.get_item(TableName=table, Key={"PK": {"S": pk}, "SK": {"S": sk}}, ConsistentRead=True)

    spans: dict[str, list[float]] = {"check": [], "bare GetItem": []}
    for _ in range(_TURNS):
        for name, action in (("check", lambda: _check(names)), ("bare GetItem", bare)):
            spans[name].append(_span(action))
    ours, plain = (statistics.median(found) for found in spans.values())
    print(f"\nA check takes {ours:.2f} ms, a bare GetItem {plain:.2f} ms: {ours / plain:.2f} times (medians of {_TURNS} in turns)")
    many = [Asked(APPROVALS, ACME, (*names[:2], f"GET{number}")) for number in range(100)]
    at_once = sum(_span(lambda: queries.check_many(many, caller=BENCH, clock=CLOCK)) for _ in range(10))
    singly = sum(_span(lambda one=one: _check(one.names)) for one in many for _ in range(10))  # type: ignore[misc]
    print(f"1,000 checks take {at_once:,.0f} ms by batches of 100, and {singly:,.0f} ms one by one")
    return [f"a check takes {ours / plain:.2f} times a bare GetItem"] if ours > _MOST_OF_BARE * plain else []


def _span(action: Callable[[], object]) -> float:
    began = time.perf_counter()
    action()
    return 1000 * (time.perf_counter() - began)


def _deletion(count: int) -> list[str]:
    """Each worker is killed while it is at it; the last one comes to the end."""
    for scope in (DOOMED, NEIGHBOUR):
        _grant(scope, ("first", "doc", "GET"))
    _fill(DOOMED, range(count - 1))
    _fill(NEIGHBOUR, range(99))
    began = time.monotonic()
    operations.begin_deletion(scope=DOOMED, typed=DOOMED, caller=BENCH, now=CLOCK.now())
    for _ in range(_KILLS):
        before = _removed()
        worker = _worker()
        while _removed() < before + count // (2 * _KILLS) and worker.poll() is None:
            time.sleep(0.2)
        worker.send_signal(signal.SIGKILL)
        worker.wait()
        print(f"killed with {_removed():,} of {count:,} removed, after {time.monotonic() - began:.0f} s", flush=True)
    while queries.find_scope(DOOMED, caller=BENCH).state is ScopeState.DELETING:
        _worker().wait()
    receipts = [event.data["records"] for event in audit.history(f"scope#{DOOMED}").items if event.action == "authz_scope.deleted"]
    left, beside = (queries.count_in_scope(APPROVALS, scope, caller=BENCH, now=CLOCK.now()) for scope in (DOOMED, NEIGHBOUR))
    print(f"after {time.monotonic() - began:.0f} s: {left} left, receipts {receipts}, {beside} of 100 beside it")
    return [] if (left, beside, receipts) == (0, 100, [count]) else ["the deletion left or took too much"]


def _removed() -> int:
    return queries.find_scope(DOOMED, caller=BENCH).removed


def _worker() -> subprocess.Popen[bytes]:
    return subprocess.Popen([sys.executable, "-m", "benchmarks.authz", "--go-on", current_settings().table_prefix])


def _client() -> Any:
    return boto3.session.Session(region_name=REGION).client("dynamodb")


def _table() -> str:
    return f"{current_settings().table_prefix}Approvals"


if __name__ == "__main__":
    sys.exit(main())
