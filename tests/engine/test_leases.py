"""The pool of accounts on a real engine: the seed's patterns by value, and many who take and give back at once."""

from __future__ import annotations

import threading
import uuid
from collections import Counter
from collections.abc import Callable
from functools import partial
from typing import TypeVar

import pytest

from accessportal.audit import queries as audit
from accessportal.kernel.clock import SystemClock
from accessportal.kernel.errors import Conflict, Unavailable
from accessportal.leases import operations, queries
from accessportal.leases.states import AccountState, Lease
from accessportal.store.transactions import Overtaken
from accessportal.waiting import queries as line
from accessportal.waiting.states import ACCOUNTS
from tests.depth import examples
from tests.engine.stage import at_once, lost, won
from tests.leases.conftest import ALICE, CARL, JOB, OLGA, AccountsPool
from tests.leases.reading import check_whole, data_of, ids_in, lists

pytestmark = pytest.mark.usefixtures("engine")
T = TypeVar("T")
THREADS = 32
POOL = AccountsPool(SystemClock())


def until_done(action: Callable[[], T]) -> T:
    """Who is told that others were faster, or that the store is busy, tries again."""
    for _ in range(200):
        try:
            return action()
        except (Overtaken, Unavailable):
            continue
    raise AssertionError("others are faster for ever")


def test_the_patterns_of_the_seed_by_value() -> None:
    first, second = POOL.fill(2)
    assert lists() == {"all": [first, second], "available": [first, second]}

    lease = POOL.started(ALICE)

    assert data_of(f"account_id#{lease.account_id}") == "leased"
    assert data_of(f"lease_id#{lease.lease_id}") == {"state": "active", "account": lease.account_id, "user": ALICE}
    assert data_of(f"user_id#{ALICE}") == {"lease": lease.lease_id, "account": lease.account_id}
    [free] = {first, second} - {lease.account_id}
    expected = {"all": [first, second], "available": [free], "leased": [lease.account_id], "active": [lease.lease_id]}
    assert lists() == expected
    POOL.let_go(lease)
    assert lists() == {"all": [first, second], "available": [free], "dirty": [lease.account_id]}
    operations.retire(account_id=free, reason="Gone", actor=OLGA, now=POOL.clock.now())
    assert lists() == {"all": [lease.account_id], "dirty": [lease.account_id]}
    assert operations.check_pool(is_mending=False, actor=OLGA).is_ok
    check_whole()


def test_two_who_give_back_and_take_at_once() -> None:
    [only] = POOL.fill(1)
    lease = POOL.started(ALICE)

    answers = at_once([partial(POOL.let_go, lease)] * 8)
    assert lost(answers) == []
    assert len(set(won(answers))) == 1

    racers: list[Callable[[], object]] = [partial(POOL.revive, lease, "again"), partial(POOL.clean, only)]
    outcomes = at_once(racers * 4)
    assert all(isinstance(error, Conflict | Overtaken | Unavailable) for error in lost(outcomes))
    assert POOL.get(only).state in (AccountState.LEASED, AccountState.AVAILABLE)
    check_whole()


def test_thirty_two_hands_at_once_lose_no_account_and_lend_none_twice() -> None:
    """Each thread is a person who takes, starts, gives back or takes back, and a cleaner between. Receipts are compared, not the table."""
    ids = POOL.fill(12)
    holders: dict[str, str] = {}
    fences: list[tuple[str, int]] = []
    problems: list[str] = []
    guard = threading.Condition()

    def got(lease: Lease, me: str) -> None:
        with guard:
            if holders.setdefault(lease.account_id, me) != me:
                problems.append(f"{lease.account_id} to {me} while {holders[lease.account_id]} had it")
            fences.append((lease.account_id, lease.fence))

    def give_back(lease: Lease, me: str) -> None:
        with guard:
            if holders.pop(lease.account_id, "") != me:
                problems.append(f"{me} gives back {lease.account_id}, which they had not")
        until_done(partial(POOL.let_go, lease))

    def clean(account_id: str) -> None:
        if POOL.get(account_id).state.is_cleaned_next:
            POOL.clean(account_id)
        with guard:
            guard.notify_all()

    def served(claim: str) -> Lease:
        while (lease := queries.find_lease(lease_id=claim)) is None:
            with guard:
                is_quiet = not guard.wait(timeout=2)
            if is_quiet:
                # What came between a look at the pool and a place in the line, the job heals.
                operations.serve_line(actor=JOB, clock=POOL.clock)
        return lease

    def hand(number: int) -> None:
        me = f"person{number:02}@example.com"
        for _ in range(examples(1)):
            claim = str(uuid.uuid4())
            found = until_done(partial(POOL.take, me, claim=claim, most_held=1))
            if not isinstance(found, Lease):
                found = until_done(partial(served, claim))
            got(found, me)
            until_done(partial(POOL.start, found))
            give_back(found, me)
            until_done(partial(clean, found.account_id))

    assert lost(at_once([partial(hand, number) for number in range(THREADS)])) == []

    assert problems == []
    assert [pair for pair, count in Counter(fences).items() if count > 1] == []
    assert len(fences) == THREADS * examples(1)
    for _ in ids:
        for account_id in ids:
            until_done(partial(clean, account_id))
    assert line.get_line(ACCOUNTS).waiting == 0
    assert ids_in("account_status#available") == sorted(ids)
    check_whole()
    unread: list[object] = []
    for row in queries.every_row(past=unread.append):
        assert audit.check_head(row.entity, version=row.version, audit_head=row.audit_head) == []
    assert unread == []


def test_the_line_is_served_in_order() -> None:
    """Twenty wait for two accounts; each that is served gives back. The order of joining is the order of the hand-overs."""
    POOL.fill(2)
    held = [POOL.started(CARL), POOL.started(CARL)]
    claims = [f"claim-{number:02}" for number in range(20)]
    for number, claim in enumerate(claims):
        POOL.take(f"person{number}@example.com", claim=claim)
    served: list[str] = []
    while held:
        lease = held.pop(0)
        POOL.let_go(lease)
        until_done(partial(POOL.clean, lease.account_id))
        new = [claim for claim in claims if claim not in served and queries.find_lease(lease_id=claim)]
        served += new
        held += [POOL.start(queries.get_lease(lease_id=claim)) for claim in new]

    assert served == claims
    check_whole()
