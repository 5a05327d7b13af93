"""Rows of the pool, one attribute spoilt at a time: what can't be read is named, is nobody's, and stops nothing."""

from __future__ import annotations

from typing import Any

import boto3
import pytest

from accessportal.kernel.pages import UnreadableItem, every
from accessportal.leases import operations, queries
from accessportal.leases.models import AccountItem, LeaseItem, PersonItem, person_key
from accessportal.leases.states import AccountState
from accessportal.waiting.models import WaitingItem, place_key
from accessportal.waiting.states import ACCOUNTS
from tests.damage import damaged
from tests.fixtures_twin import REGION
from tests.leases.conftest import ALICE, CARL, JOB, OLGA, AccountsPool
from tests.leases.reading import ids_in

BEA = "bea@example.com"


def spoil(model: Any, word: str, one: str) -> list[str]:
    """Spoilt copies of an item beside it, each under an id of its own; the ids."""
    client = boto3.client("dynamodb", region_name=REGION)
    item = client.get_item(TableName="AccountPool", Key={"pk": {"S": f"{word}#{one}"}})["Item"]
    ids = []
    for number, (name, copy) in enumerate(damaged(model, item)):
        if name == word:
            continue
        ids.append(f"{5 * 10**11 + number:012d}")
        client.put_item(TableName="AccountPool", Item={**copy, "pk": {"S": f"{word}#{ids[-1]}"}, word: {"S": ids[-1]}})
    return ids


def test_accounts_that_can_not_be_read_are_named_and_lent_to_nobody(accounts: AccountsPool) -> None:
    healthy = accounts.fill(2)
    ids = spoil(AccountItem, "account_id", healthy[0])
    named: set[str] = set()

    found = list(every(lambda cursor: queries.list_accounts(cursor=cursor), past=lambda one: named.add(one.key.partition("#")[2])))

    assert set(healthy) <= {one.account_id for one in found}
    assert len(named) > 30
    assert named <= set(ids)
    for account_id in named:
        with pytest.raises(UnreadableItem, match=account_id):
            accounts.get(account_id)
    lent = [accounts.taken(user, most_held=1).account_id for user in (ALICE, CARL)]
    assert not set(lent) & named
    report = operations.check_pool(is_mending=False, actor=OLGA)
    assert named <= {one.item.partition("#")[2] for one in report.failures}


def test_who_waits_and_can_not_be_read_stops_nobody_behind_them(accounts: AccountsPool) -> None:
    accounts.fill(2)
    alices, carls = accounts.started(ALICE), accounts.started(CARL)
    for user in (ALICE, CARL, BEA):
        accounts.take(user, claim=user)
    PersonItem.get(person_key(ALICE)).update(actions=[PersonItem.leases.remove()])
    second = WaitingItem.get(*place_key(ACCOUNTS, 2))
    second.update(actions=[WaitingItem.wants.set({"pool": "default"})])

    accounts.let_go(carls)
    accounts.clean(carls.account_id)

    assert queries.get_lease(lease_id=BEA).account_id == carls.account_id
    report = operations.serve_line(actor=JOB, clock=accounts.clock)
    words = "The item account, place 2 of the table WaitingLine can't be read (wants: 'most_held')."
    assert [failure.error for failure in report.failures] == [f"{words} Somebody else has changed it; mend it by hand."]
    assert accounts.get(alices.account_id).user == ALICE


def test_leases_that_can_not_be_read_stop_no_other(accounts: AccountsPool) -> None:
    accounts.fill(2)
    lease = accounts.started(ALICE)
    ids = spoil(LeaseItem, "lease_id", lease.lease_id)
    named: set[str] = set()

    found = list(every(lambda cursor: queries.list_leases(cursor=cursor), past=lambda one: named.add(one.key.partition("#")[2])))

    assert lease in found
    assert len(named) > 30
    assert named <= set(ids)
    for lease_id in named:
        with pytest.raises(UnreadableItem, match=lease_id):
            queries.get_lease(lease_id=lease_id)
    accounts.let_go(lease)
    assert accounts.get(lease.account_id).state is AccountState.DIRTY
    assert ids_in("lease_status#active") == []
    report = operations.check_pool(is_mending=True, actor=OLGA)
    assert named <= {one.item.partition("#")[2] for one in report.failures}
