"""Counting the accounts: now, over time, and what a page gets of it."""

from __future__ import annotations

from datetime import timedelta

import boto3
import pytest

from accessportal.kernel.errors import Unavailable
from accessportal.leases import operations, queries
from accessportal.leases.models import AccountItem, CountItem
from accessportal.leases.states import AccountState
from tests.conftest import START, FakeClock
from tests.damage import damaged
from tests.fixtures_twin import REGION
from tests.leases.conftest import OLGA, AccountsPool


def test_nobody_has_counted_yet(accounts: AccountsPool) -> None:
    assert queries.last_count() is None
    assert queries.counts_between(since=START - timedelta(days=7), until=START) == ()


def test_a_count_tells_states_pools_ends_and_what_was_handed_out(accounts: AccountsPool, clock: FakeClock) -> None:
    ids = accounts.fill(4)
    accounts.add(["999999999999"], pool="gpu")
    first = operations.count_accounts(clock=clock)
    clock.advance(600)
    lease, starting = accounts.started("alice@example.com", seconds=7200), accounts.taken("carl@example.com", seconds=3600)
    free = next(one for one in ids if accounts.get(one).state is AccountState.AVAILABLE)
    operations.quarantine(account_id=free, reason="smoke", actor=OLGA, now=clock.now())
    second = operations.count_accounts(clock=clock)

    assert (first.handed_out, second.handed_out) == (0, 2)
    assert second == queries.last_count()
    assert dict(second.counts) == dict(zip(AccountState, (1, 1, 2, 0, 1), strict=True))
    assert second.pools["gpu"] == {**dict.fromkeys(AccountState, 0), AccountState.INITIAL: 1}
    assert second.pools["default"][AccountState.LEASED] == 2
    added_at = accounts.get("999999999999").added_at
    assert second.ends == (added_at, starting.taken_at + timedelta(hours=1), lease.ends_at)
    kept = queries.counts_between(since=START - timedelta(days=1), until=clock.now())
    assert [(one.counted_at, one.counts.get(AccountState.LEASED, 0), one.handed_out) for one in kept] == [
        (first.counted_at, 0, 0),
        (second.counted_at, 2, 2),
    ]
    assert all(not one.pools for one in kept)


def test_one_count_of_five_minutes_is_kept_and_the_last_is_always_known(accounts: AccountsPool, clock: FakeClock) -> None:
    accounts.fill(1)
    first = operations.count_accounts(clock=clock)
    clock.advance(60)
    accounts.taken()
    operations.count_accounts(clock=clock)

    (kept,) = queries.counts_between(since=START, until=clock.now())
    assert kept.counted_at == first.counted_at
    assert (last := queries.last_count())
    assert last.counted_at == clock.now()


def test_a_count_left_by_a_clock_that_was_ahead_is_overwritten(accounts: AccountsPool, clock: FakeClock) -> None:
    right = clock.now()
    clock.advance(7200)
    operations.count_accounts(clock=clock)
    clock.advance(-7200)

    count = operations.count_accounts(clock=clock)

    assert queries.last_count() == count
    assert [one.counted_at for one in queries.counts_between(since=right, until=right)] == [right]


def test_counts_of_the_week_before_are_forgotten(accounts: AccountsPool, clock: FakeClock) -> None:
    for _ in range(10):
        operations.count_accounts(clock=clock)
        clock.advance(86_400)
    midnight = (clock.now() + timedelta(days=1)).replace(hour=0, minute=5)
    clock.advance((midnight - clock.now()).total_seconds())
    operations.count_accounts(clock=clock)

    days = {item.pk for item in CountItem.scan() if item.pk.startswith("account_count#2")}
    assert f"account_count#{clock.now() - timedelta(days=8):%Y-%m-%d}" not in days
    assert len(queries.counts_between(since=clock.now() - timedelta(days=7), until=clock.now())) == 7


def test_what_can_not_be_read_is_counted_as_that(accounts: AccountsPool, clock: FakeClock) -> None:
    first, _ = accounts.fill(2)
    AccountItem(f"account_id#{first}").update([AccountItem.state.set("nonsense")])

    count = operations.count_accounts(clock=clock)

    assert (count.total, count.unreadable) == (1, 1)
    assert queries.last_count() == count


@pytest.mark.parametrize("key", ["account_count#last", f"account_count#{START:%Y-%m-%d}"])
def test_a_count_that_somebody_has_spoilt_is_named(accounts: AccountsPool, clock: FakeClock, key: str) -> None:
    accounts.fill(1)
    operations.count_accounts(clock=clock)
    table = boto3.client("dynamodb", region_name=REGION)
    item = table.get_item(TableName="AccountPool", Key={"pk": {"S": key}})["Item"]
    refused: list[str] = []

    for _, copy in damaged(CountItem, item):
        table.put_item(TableName="AccountPool", Item=copy)
        try:
            queries.last_count()
            queries.counts_between(since=START - timedelta(days=1), until=START + timedelta(days=1))
        except Unavailable as error:
            refused.append(error.message)

    assert len(refused) > 3
    assert all(key in message for message in refused)
