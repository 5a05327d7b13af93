"""What the pool of accounts costs in DynamoDB, at 100 and at 10,000 accounts, and what 64 clients at once are told of it:

    python tools/dynamodb_local.py python -m benchmarks.leases
    python -m benchmarks.leases --in-process

Access is granted by nobody here: what is measured is the lending. Exit code 1 when requests grow with the pool, units grow by more than
the seed's lists do, or what clients were told can't be true.
"""

from __future__ import annotations

import argparse
import itertools
import os
import statistics
import sys
import threading
import time
import uuid
from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from datetime import timedelta
from functools import partial
from typing import Any, TypeVar

import boto3
from botocore.awsrequest import AWSPreparedRequest

from accessportal.audit import queries as audit
from accessportal.audit.states import AuditEvent
from accessportal.kernel.actors import system
from accessportal.kernel.clock import SystemClock
from accessportal.kernel.errors import Unavailable
from accessportal.kernel.ports import set_after_commit
from accessportal.leases import operations, queries
from accessportal.leases.operations import LeaseSettings, make_available, serve_line
from accessportal.leases.states import Account, AccountState, Lease
from accessportal.leases.store import lists, rows
from accessportal.store.base import StoreSettings, configure, current_settings, registered_models
from accessportal.store.tables import ensure_table
from accessportal.store.transactions import Overtaken, transact
from accessportal.waiting.states import ACCOUNTS
from benchmarks import meter
from benchmarks.installation import REGION, installation
from benchmarks.meter import Measured, measured
from benchmarks.sandboxes import write_all

T = TypeVar("T")
CLOCK = SystemClock()
BENCH = system("bench")
CROWD = "crowd"
AVAILABLE, LEASED, DIRTY = (f"account_status#{word}" for word in ("available", "leased", "dirty"))
_TIMES = 15
_TOGETHER = 5
_CLIENTS = 64
_PAUSE_SECONDS = 0.1
_LOOK_AGAIN_SECONDS = 5
_SLACK_SECONDS = 0.05
# The engine rounds each item up to whole kilobytes, and takes four units for one.
_ROUNDED_UNITS = 16


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--small", type=int, default=100, help="accounts in the pool at first (default: %(default)s)")
    parser.add_argument("--large", type=int, default=10_000, help="accounts in the pool then (default: %(default)s)")
    parser.add_argument("--leases", type=int, default=10_000, help="leases that the clients take and return (default: %(default)s)")
    parser.add_argument("--accounts", type=int, default=40, help="accounts that the clients share (default: %(default)s)")
    parser.add_argument("--in-process", action="store_true", help="the tests' DynamoDB, which tells no units: the clients alone")
    options = parser.parse_args()
    os.environ.update(AWS_ACCESS_KEY_ID="bench", AWS_SECRET_ACCESS_KEY="bench")
    if options.in_process:
        with in_process():
            problems = _crowd(options.leases, options.accounts)
    else:
        meter.install()
        with installation(accounts=12, permission_sets=12):
            configure(replace(current_settings(), read_timeout_seconds=60, reads_side_by_side=8))
            operations.configure(LeaseSettings(undo_seconds=0))
            problems = [*_crowd(options.leases, options.accounts), *_growth(options.small, options.large)]
    for problem in problems:
        print(f"NOT GOOD ENOUGH: {problem}")
    return 1 if problems else 0


@contextmanager
def in_process() -> Iterator[None]:
    """The tests' DynamoDB, one call at a time: it is made for tests of one thread."""
    from moto.core.models import botocore_stubber

    from tests.fixtures_twin import plain_twin

    with plain_twin():
        answer, one_at_a_time = botocore_stubber.process_request, threading.Lock()

        def alone(request: AWSPreparedRequest) -> Any:
            with one_at_a_time:
                return answer(request)

        botocore_stubber.process_request = alone  # type: ignore[method-assign]
        configure(StoreSettings(table_prefix="", region=REGION))
        operations.configure(LeaseSettings(undo_seconds=0))
        for model in registered_models():
            ensure_table(model, clock=CLOCK)
        yield


def until_done(action: Callable[[], T]) -> T:
    """Who is told that others were faster, or that the store is busy, tries again."""
    while True:
        try:
            return action()
        except (Overtaken, Unavailable):
            time.sleep(_PAUSE_SECONDS)


def _take(claim: str, pool: str, user: str) -> Lease | None:
    asked = operations.Asked(
        claim=claim,
        lease_id=claim,
        user=user,
        pool=pool,
        permission_set="PowerUserAccess",
        duration_seconds=3_600,
        most_held=1_000,
    )
    found = operations.take(asked, lapses_at=CLOCK.now() + timedelta(days=3), actor=BENCH, clock=CLOCK)
    return found if isinstance(found, Lease) else None


def _start(lease: Lease) -> None:
    operations.start(lease_id=lease.lease_id, claim=lease.lease_id, proved_at=CLOCK.now(), actor=BENCH, now=CLOCK.now())


def _let_go(lease: Lease) -> None:
    operations.let_go(lease_id=lease.lease_id, claim=lease.lease_id, actor=BENCH, now=CLOCK.now())


def _clean(account_id: str) -> None:
    account = rows.get_account(account_id)
    if account is not None and account.state.is_cleaned_next:
        make_available(account, certificate={"removed": 1, "left": 0}, actor=BENCH, now=CLOCK.now())


# The same at every size


def _growth(small: int, large: int) -> list[str]:
    from benchmarks.lease_runs import measure_runs

    found: dict[int, dict[str, Measured]] = {}
    of_lists: dict[int, dict[str, float]] = {}
    for size in (small, large):
        pool = f"pool-of-{size}"
        _fill(pool, size)
        of_lists[size] = _units_of_lists()
        found[size] = dict(_measure_all(pool)) | dict(measure_runs(pool, _TOGETHER))
    print(f"\nAccounts at {small:,} and {large:,}: round trips, units, milliseconds (medians)\n")
    meter.show_growth(found[small], found[large], most=1.0, may_grow=found[small])
    print(f"\nof the write units are those of the seed's lists, by their length: {of_lists[small]} → {of_lists[large]}")
    problems = []
    for name, one in found[small].items():
        other = found[large][name]
        rest = [cost.write_units - of_lists[size].get(name, 0) for size, cost in ((small, one), (large, other))]
        if other.round_trips > one.round_trips:
            problems.append(f"{name} makes {other.round_trips:g} requests at {large:,} accounts, {one.round_trips:g} at {small:,}")
        if abs(rest[1] - rest[0]) > _ROUNDED_UNITS * (_TOGETHER if str(_TOGETHER) in name else 1):
            problems.append(f"{name} writes {rest[1]:g} units beside the lists at {large:,} accounts, {rest[0]:g} at {small:,}")
    return problems


def _fill(pool: str, size: int) -> None:
    """Free accounts as cleanings leave them, without their events; the lists of what is lent hold half as many ids again."""
    now = CLOCK.now()
    pattern = Account("", AccountState.AVAILABLE, pool, now, now, version=1, audit_head="x")
    ids = [f"{size + number * 99_999_989 % 10**12:012d}" for number in range(size)]
    items = (rows.accounts.insertion(replace(pattern, account_id=one)).item.serialize() for one in ids)
    client, table = boto3.client("dynamodb", region_name=REGION), f"{current_settings().table_prefix}AccountPool"
    write_all(client, table, items)
    others = [f"{10**11 + number:012d}" for number in range(size // 2)]
    leases = [str(uuid.uuid4()) for _ in others]
    held = {"account_status#all": ids + others, AVAILABLE: ids, LEASED: others, "lease_status#active": leases}
    for name, found in held.items():
        client.put_item(TableName=table, Item={"pk": {"S": name}, "data": {"L": [{"S": one} for one in found]}})


def _units_of_lists() -> dict[str, float]:
    """What the engine charges for the lists that an action changes: each by its whole size."""
    units: dict[str, float] = {}
    for name in lists.NAMES:
        with meter.metered() as cost:
            transact([lists.enter(name, "9" * 12)])
        units[name] = cost.write_units
        transact([lists.remove(name, "9" * 12, lists.read(name))])
    active = units["lease_status#active"]
    units_of = {
        "take": units[AVAILABLE] + units[LEASED],
        "start": active,
        "return": units[LEASED] + units[DIRTY] + active,
        "cleaned, free": units[DIRTY] + units[AVAILABLE],
    }
    together = {f"expiry run, {_TOGETHER} over": "return", f"clean run, {_TOGETHER} end": "cleaned, free"}
    return units_of | {name: _TOGETHER * units_of[one] for name, one in together.items()}


def _measure_all(pool: str) -> Iterator[tuple[str, Measured]]:
    claims = [str(uuid.uuid4()) for _ in range(_TIMES)]
    yield "take", measured([partial(_take, claim, pool, f"{claim}@example.com") for claim in claims])
    held = [queries.get_lease(lease_id=claim) for claim in claims]
    yield "take, again", measured([partial(_take, claim, pool, f"{claim}@example.com") for claim in claims])
    yield "start", measured([partial(_start, lease) for lease in held])
    yield "return", measured([partial(_let_go, lease) for lease in held])
    due = [lambda: list(queries.to_clean(now=CLOCK.now(), past=_must_not_be))]
    yield "what is to be cleaned", measured([*due, *due, *due])
    yield "cleaned, free", measured([partial(_clean, lease.account_id) for lease in held])
    yield "serve the line, nobody waits", measured([lambda: serve_line(actor=BENCH, clock=CLOCK)] * 3)
    yield "page of accounts", measured([lambda: queries.list_accounts(pool=pool, state=AccountState.AVAILABLE, limit=15)] * _TIMES)


def _must_not_be(one: object) -> None:
    raise AssertionError(one)


# Many at once


@dataclass
class Told:
    """What the clients were told: who had which account from when until when, and between which moments none was free; and the cleaners,
    since when an account may be had at the latest after which hand-over."""

    held: list[tuple[str, int, str, float, float]] = field(default_factory=list)
    queued: list[tuple[str, float, float]] = field(default_factory=list)
    spans: list[float] = field(default_factory=list)
    ended: threading.Event = field(default_factory=threading.Event)
    cleaned: dict[tuple[str, int], float] = field(default_factory=dict)
    bells: dict[str, threading.Event] = field(default_factory=lambda: defaultdict(threading.Event))

    def ring(self, _name: str, /, **payload: str) -> None:
        """Somebody was served: the portal would go on with their request now."""
        if "request_id" in payload:
            self.bells[payload["request_id"]].set()


def _crowd(count: int, shared: int) -> list[str]:
    ids = [f"{9 * 10**11 + number:012d}" for number in range(shared)]
    operations.add_accounts([operations.NewAccount(one) for one in ids], pool=CROWD, actor=BENCH, now=CLOCK.now())
    told, numbers = Told(), iter(range(count))
    for account_id in ids:
        _clean_for(told, account_id)
    set_after_commit(told.ring)
    clients = [threading.Thread(target=_client, args=(told, numbers)) for _ in range(_CLIENTS)]
    helpers = [threading.Thread(target=_cleaner, args=(told, ids[part::2])) for part in range(2)]
    helpers.append(threading.Thread(target=_server, args=(told,)))
    began = time.monotonic()
    for thread in [*clients, *helpers]:
        thread.start()
    for thread in clients:
        thread.join()
    seconds = time.monotonic() - began
    told.ended.set()
    for thread in helpers:
        thread.join()
    for account_id in ids:
        _clean(account_id)
    waits = f"{len(told.queued):,} waited in the line"
    print(
        f"{len(told.held):,} leases of {shared} accounts by {_CLIENTS} clients in {seconds:.0f} s ({len(told.held) / seconds:.1f} a second)"
    )
    print(f"{waits}; a take that found one free took {1000 * statistics.median(told.spans or [0]):.0f} ms (median)")
    histories = {one: audit.chain_of(f"account#{one}") for one in ids}
    problems = [*_two_holders(told), *_refused(told, histories), *_out_of_order()]
    if len(told.held) != count:
        problems.append(f"{count - len(told.held)} leases were lost")
    report = operations.check_pool(is_mending=False, actor=BENCH)
    return problems + [str(one) for one in report.differences] + [str(one) for one in report.failures]


def _client(told: Told, numbers: Iterator[int]) -> None:
    lock = _numbers_lock
    while True:
        with lock:
            number = next(numbers, None)
        if number is None:
            return
        claim = str(uuid.uuid4())
        asked_at = time.time()
        lease = until_done(partial(_take, claim, CROWD, f"person{number}@example.com"))
        if lease is None:
            told.queued.append((claim, asked_at, time.time()))
            while (lease := queries.find_lease(lease_id=claim)) is None:
                told.bells[claim].wait(_LOOK_AGAIN_SECONDS)
        else:
            told.spans.append(time.time() - asked_at)
        got_at = time.time()
        until_done(partial(_start, lease))
        back_at = time.time()
        until_done(partial(_let_go, lease))
        told.held.append((lease.account_id, lease.fence, claim, got_at, back_at))


_numbers_lock = threading.Lock()


def _cleaner(told: Told, ids: Sequence[str]) -> None:
    while not told.ended.wait(_LOOK_AGAIN_SECONDS / 10):
        for account_id in [one.account_id for one in queries.to_clean(now=CLOCK.now(), past=_must_not_be) if one.account_id in ids]:
            until_done(partial(_clean_for, told, account_id))


def _clean_for(told: Told, account_id: str) -> None:
    fence = queries.get_account(account_id=account_id).fence
    _clean(account_id)
    told.cleaned[account_id, fence] = time.time()


def _server(told: Told) -> None:
    while not told.ended.wait(1):
        until_done(lambda: serve_line(actor=BENCH, clock=CLOCK))


def _two_holders(told: Told) -> Iterator[str]:
    by_account = defaultdict(list)
    for account_id, fence, claim, got_at, back_at in told.held:
        by_account[account_id].append((got_at, back_at, fence, claim))
    for account_id, spans in by_account.items():
        for (_, back_at, fence, _), (got_at, _, later, _) in itertools.pairwise(sorted(spans)):
            if got_at < back_at or later <= fence:
                yield f"{account_id}: hand-over {later} was told {back_at - got_at:.3f} s before hand-over {fence} was given back"


def _refused(told: Told, histories: dict[str, tuple[AuditEvent, ...]]) -> Iterator[str]:
    """Whoever was sent to the line while one account was free from the question to the answer. An event's time is that of its decision,
    which is early enough for the end of that alone."""
    free = [
        (told.cleaned[one.entity.partition("#")[2], one.data["fence"]], after.at.timestamp() - _SLACK_SECONDS)
        for events in histories.values()
        for one, after in itertools.pairwise(events)
        if one.action == "account.cleaned" and (one.entity.partition("#")[2], one.data["fence"]) in told.cleaned
    ]
    for claim, asked_at, answered_at in told.queued:
        if any(start <= asked_at and answered_at <= end for start, end in free):
            yield f"{claim} was sent to the line while an account was free"


def _out_of_order() -> Iterator[str]:
    """Each place that was served was the first, by the chain of the line: all want the same."""
    waiting: list[int] = []
    for event in audit.chain_of(f"line#{ACCOUNTS}"):
        place = event.data["place"]
        if event.action == "line.joined":
            waiting.append(place)
            continue
        if event.action == "line.served" and place != waiting[0]:
            yield f"place {place} was served before place {waiting[0]}"
        waiting.remove(place)


if __name__ == "__main__":
    sys.exit(main())
