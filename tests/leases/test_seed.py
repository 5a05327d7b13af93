"""Seed 004: every access pattern of the document with plain boto3, by value, and the lists after each step of a story."""

from __future__ import annotations

import pytest

from accessportal.leases import operations
from tests.leases.conftest import ALICE, CARL, JOB, OLGA, AccountsPool
from tests.leases.reading import check_whole, data_of, lists, table

ONE, TWO, THREE = "111111111111", "222222222222", "333333333333"


@pytest.fixture
def pool(accounts: AccountsPool) -> AccountsPool:
    return accounts


def test_the_key_is_pk_alone(pool: AccountsPool) -> None:
    pool.add([ONE])

    assert table().key_schema == [{"AttributeName": "pk", "KeyType": "HASH"}]
    assert table().get_item(Key={"pk": f"account_id#{ONE}"})["Item"]["data"] == "initial"


def test_the_lists_after_each_step_of_a_story(pool: AccountsPool) -> None:
    steps: list[dict[str, list[str]]] = []

    def step() -> None:
        check_whole()
        steps.append(lists())

    everything = [ONE, TWO, THREE]
    pool.add(everything)
    step()
    pool.clean(ONE)
    step()
    lease = pool.taken(ALICE)
    step()
    pool.start(lease)
    step()
    operations.freeze(lease_id=lease.lease_id, reason="Too dear", actor=OLGA, now=pool.clock.now())
    operations.note_access_off(lease_id=lease.lease_id, actor=JOB, now=pool.clock.now())
    step()
    pool.let_go(lease)
    step()
    pool.clean(ONE)
    operations.quarantine(account_id=TWO, reason="Odd", actor=OLGA, now=pool.clock.now())
    step()
    operations.retire(account_id=THREE, reason="Not ours any more", actor=OLGA, now=pool.clock.now())
    step()

    active = {"active": [lease.lease_id]}
    assert steps == [
        {"all": everything, "initial": everything},
        {"all": everything, "initial": [TWO, THREE], "available": [ONE]},
        {"all": everything, "initial": [TWO, THREE], "leased": [ONE]},
        {"all": everything, "initial": [TWO, THREE], "leased": [ONE], **active},
        {"all": everything, "initial": [TWO, THREE], "leased": [ONE], **active},
        {"all": everything, "initial": [TWO, THREE], "dirty": [ONE]},
        {"all": everything, "initial": [THREE], "available": [ONE], "failed": [TWO]},
        {"all": [ONE, TWO], "available": [ONE], "failed": [TWO]},
    ]


def test_a_lease_and_its_person_as_the_seed_shows_them(pool: AccountsPool) -> None:
    pool.fill(2)

    first = pool.taken(ALICE)
    assert data_of(f"lease_id#{first.lease_id}") == {"state": "starting", "account": first.account_id, "user": ALICE}
    pool.start(first)
    assert data_of(f"lease_id#{first.lease_id}") == {"state": "active", "account": first.account_id, "user": ALICE}
    assert data_of(f"user_id#{ALICE}") == {"lease": first.lease_id, "account": first.account_id}

    second = pool.started(ALICE)
    assert data_of(f"user_id#{ALICE}") == {"lease": second.lease_id, "account": second.account_id}
    assert table().get_item(Key={"pk": f"user_id#{ALICE}"})["Item"]["leases"] == [
        {"lease": one.lease_id, "account": one.account_id} for one in (first, second)
    ]

    pool.let_go(second)
    assert data_of(f"lease_id#{second.lease_id}") is None
    assert data_of(f"user_id#{ALICE}") == {"lease": first.lease_id, "account": first.account_id}
    pool.let_go(first)
    assert data_of(f"user_id#{ALICE}") is None
    assert data_of(f"user_id#{CARL}") is None
    check_whole()
