"""The life of a lease: time from the proof, several claims, freezing, giving back, taking back."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest

from accessportal.kernel.errors import Conflict, InvalidRequest, NotAllowed
from accessportal.leases import operations, queries
from accessportal.leases.states import AccountState, LeaseState, LentTo, NoSuchLease
from tests.leases.conftest import ALICE, CARL, DAY, JOB, MALLORY, OLGA, AccountsPool
from tests.leases.reading import check_whole, ids_in, table
from tests.leases.test_taking import before_the_next_write


def must_not_be(one: object) -> None:
    raise AssertionError(one)


def test_the_time_runs_from_the_proof(accounts: AccountsPool) -> None:
    accounts.fill(1)
    lease = accounts.taken(ALICE, seconds=3_600)
    accounts.clock.sleep(1_800)

    started = accounts.start(lease)

    assert started.started_at == accounts.clock.now()
    assert started.ends_at == accounts.clock.now() + timedelta(seconds=3_600)
    assert started.claims == {lease.lease_id: started.ends_at}
    accounts.clock.sleep(60)
    assert accounts.start(lease) == started


def test_a_proof_by_a_clock_that_is_ahead_counts_from_now(accounts: AccountsPool) -> None:
    accounts.fill(1)
    lease = accounts.taken(ALICE, seconds=3_600)

    started = accounts.start(lease, proved_at=accounts.clock.now() + timedelta(days=3))

    assert started.ends_at == accounts.clock.now() + timedelta(seconds=3_600)


def test_the_last_claim_that_goes_ends_the_lease(accounts: AccountsPool) -> None:
    accounts.fill(1)
    lease = accounts.started(ALICE, claim="one", seconds=3_600)
    longer = accounts.clock.now() + timedelta(hours=5)
    more: dict[str, Any] = {"lease_id": "one", "claim": "two", "ends_at": longer, "actor": JOB, "now": accounts.clock.now()}

    assert operations.prolong(**more).ends_at == longer
    assert operations.prolong(**more).version == 3
    assert accounts.let_go(lease, "stranger") == LentTo(ALICE, lease.account_id, 1, frozenset({"one", "two"}))
    assert accounts.let_go(lease, "two") == LentTo(ALICE, lease.account_id, 1, frozenset({"one"}))
    assert queries.get_lease(lease_id="one").ends_at == lease.ends_at
    assert accounts.let_go(lease, "one") == LentTo(ALICE, lease.account_id, 1)
    assert accounts.let_go(lease, "one") == LentTo(ALICE, lease.account_id, 1)

    account = accounts.get(lease.account_id)
    assert (account.state, account.user) == (AccountState.DIRTY, ALICE)
    assert account.due_at == accounts.clock.now() + timedelta(seconds=120)
    with pytest.raises(NoSuchLease):
        operations.prolong(**more)
    with pytest.raises(NoSuchLease):
        operations.let_go(lease_id="never", claim="never", actor=JOB, now=accounts.clock.now())
    check_whole()


def test_two_who_give_back_at_once_end_it_once(accounts: AccountsPool, monkeypatch: pytest.MonkeyPatch) -> None:
    accounts.fill(1)
    lease = accounts.started(ALICE)
    before_the_next_write(monkeypatch, lambda: accounts.let_go(lease))

    assert accounts.let_go(lease) == LentTo(ALICE, lease.account_id, 1)
    events = queries.history_of_account(account_id=lease.account_id).items
    assert [event.action for event in events].count("account.given_back") == 1
    check_whole()


def test_a_lease_ends_also_where_somebody_deleted_what_its_person_has(accounts: AccountsPool) -> None:
    accounts.fill(1)
    lease = accounts.started(ALICE)
    table().delete_item(Key={"pk": f"user_id#{ALICE}"})

    assert accounts.let_go(lease) == LentTo(ALICE, lease.account_id, 1)
    assert accounts.get(lease.account_id).state is AccountState.DIRTY
    check_whole()


def test_a_lease_ends_also_where_its_account_was_deleted_and_is_somebody_elses(accounts: AccountsPool) -> None:
    [only] = accounts.fill(1)
    lease = accounts.started(ALICE)
    table().delete_item(Key={"pk": f"account_id#{only}"})
    accounts.add([only])
    accounts.clean(only)
    carls = accounts.started(CARL)

    assert accounts.let_go(lease) == LentTo(ALICE, only, 1)
    assert (accounts.get(only).state, accounts.get(only).lease_id) == (AccountState.LEASED, carls.lease_id)
    assert queries.find_lease(lease_id=lease.lease_id) is None
    assert queries.leases_of(user=ALICE) == ()


def test_a_lease_is_frozen_once_its_access_is_off(accounts: AccountsPool) -> None:
    accounts.fill(1)
    lease, now = accounts.started(ALICE), accounts.clock.now()
    one: dict[str, Any] = {"lease_id": lease.lease_id, "actor": OLGA, "now": now}

    assert operations.freeze(reason="Too dear", **one).state is LeaseState.ACTIVE
    assert [found.lease_id for found in queries.to_freeze(now=now, past=must_not_be)] == [lease.lease_id]
    later = operations.put_off(lease_id=lease.lease_id, error="AWS is away", due_at=now + timedelta(minutes=1), actor=JOB, now=now)
    assert (later.attempts, later.error) == (1, "AWS is away")
    assert list(queries.to_freeze(now=now, past=must_not_be)) == []
    # Put off by a clock that was wrong.
    operations.put_off(lease_id=lease.lease_id, error="", due_at=now + timedelta(days=40), actor=JOB, now=now)
    assert [found.wanted for found in queries.to_freeze(now=now, past=must_not_be)] == [LeaseState.FROZEN]

    frozen = operations.note_access_off(lease_id=lease.lease_id, actor=JOB, now=now)
    assert (frozen.state, frozen.wanted, frozen.freeze_reason, frozen.error) == (LeaseState.FROZEN, None, "Too dear", "")
    assert operations.note_access_on(lease_id=lease.lease_id, actor=JOB, now=now) == frozen
    assert operations.freeze(reason="Again", **one) == frozen
    assert operations.unfreeze(**one).wanted is LeaseState.ACTIVE
    active = operations.note_access_on(lease_id=lease.lease_id, actor=JOB, now=now)
    assert (active.state, active.freeze_reason, active.ends_at) == (LeaseState.ACTIVE, "", lease.ends_at)
    assert ids_in("lease_status#active") == [lease.lease_id]


def test_who_may_not_freeze_and_when_it_can_not_be(accounts: AccountsPool) -> None:
    accounts.fill(1)
    lease, now = accounts.taken(ALICE), accounts.clock.now()

    with pytest.raises(NotAllowed):
        operations.freeze(lease_id=lease.lease_id, reason="Mine", actor=MALLORY, now=now)
    with pytest.raises(InvalidRequest):
        operations.freeze(lease_id=lease.lease_id, reason=" ", actor=OLGA, now=now)
    with pytest.raises(Conflict, match="has not started"):
        operations.freeze(lease_id=lease.lease_id, reason="Too dear", actor=OLGA, now=now)


def test_the_last_holder_takes_back_the_very_account(accounts: AccountsPool) -> None:
    accounts.fill(2)
    lease = accounts.started(ALICE)
    accounts.let_go(lease)
    accounts.clock.sleep(60)

    again = accounts.revive(lease, "again")

    assert (again.account_id, again.fence, again.state) == (lease.account_id, lease.fence, LeaseState.STARTING)
    account = accounts.get(lease.account_id)
    assert (account.state, account.fence, account.due_at) == (AccountState.LEASED, 1, None)
    assert accounts.revive(lease, "again") == again
    accounts.let_go(accounts.start(again))
    check_whole()


@pytest.mark.parametrize("seconds", [121, DAY])
def test_after_a_while_nobody_takes_back(accounts: AccountsPool, seconds: int) -> None:
    accounts.fill(1)
    lease = accounts.started(ALICE)
    accounts.let_go(lease)
    accounts.clock.sleep(seconds)

    with pytest.raises(Conflict) as refused:
        accounts.revive(lease, "again")
    assert refused.value.code == "undo_over"


def test_nobody_else_takes_back(accounts: AccountsPool) -> None:
    accounts.fill(1)
    lease = accounts.started(ALICE)
    accounts.let_go(lease)

    strangers: list[dict[str, Any]] = [{"user": CARL}, {"ended_lease_id": "another"}]
    for changed in strangers:
        with pytest.raises(Conflict):
            accounts.revive(lease, "again", **changed)


@pytest.mark.parametrize("is_done", [False, True])
def test_what_was_frozen_is_not_taken_back(accounts: AccountsPool, *, is_done: bool) -> None:
    accounts.fill(1)
    lease = accounts.started(ALICE)
    operations.freeze(lease_id=lease.lease_id, reason="It mines coins", actor=OLGA, now=accounts.clock.now())
    if is_done:
        operations.note_access_off(lease_id=lease.lease_id, actor=JOB, now=accounts.clock.now())
    accounts.let_go(lease)

    with pytest.raises(Conflict) as refused:
        accounts.revive(lease, "again")
    assert refused.value.code == "undo_over"
    account = accounts.get(lease.account_id)
    assert (account.state, account.due_at, account.user) == (AccountState.DIRTY, accounts.clock.now(), "")
    check_whole()


def test_taking_back_against_the_cleaning(accounts: AccountsPool, monkeypatch: pytest.MonkeyPatch) -> None:
    accounts.fill(1)
    lease = accounts.started(ALICE)
    accounts.let_go(lease)
    before_the_next_write(monkeypatch, lambda: accounts.clean(lease.account_id))

    with pytest.raises(Conflict) as refused:
        accounts.revive(lease, "again")
    assert refused.value.code == "undo_over"
    assert ids_in("account_status#available") == [lease.account_id]
    check_whole()
