"""What operators do with the pool, and the lists against the rows."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest

from accessportal.audit import operations as audit
from accessportal.kernel.errors import Conflict, InvalidRequest, NotAllowed
from accessportal.leases import operations, queries
from accessportal.leases.models import ListItem
from accessportal.leases.operations import NewAccount
from accessportal.leases.states import AccountState, Difference, ListFull, NoSuchAccount
from accessportal.leases.store import lists, notes, rows
from accessportal.store.transactions import ConditionFailed
from tests.leases.conftest import ALICE, JOB, MALLORY, OLGA, AccountsPool, account_ids
from tests.leases.reading import check_whole, ids_in, table

ONE, TWO = account_ids(2)


@pytest.mark.parametrize(
    ("changed", "field"),
    [
        ({"account_id": "11111111111"}, "account_id"),
        ({"account_id": "11111111111a"}, "account_id"),
        ({"account_id": "１１１１１１１１１１１１"}, "account_id"),
        ({"size": "Large"}, "size"),
        ({"name": "x" * 101}, "name"),
        ({"tags": {"a": "\x00"}}, "tags"),
        ({"tags": {str(number): "" for number in range(51)}}, "tags"),
    ],
)
def test_what_can_be_no_account_is_refused_and_nothing_is_written(accounts: AccountsPool, changed: dict[str, Any], field: str) -> None:
    new = [NewAccount(ONE), NewAccount(**{"account_id": TWO, **changed})]

    with pytest.raises(InvalidRequest) as refused:
        operations.add_accounts(new, pool="default", actor=OLGA, now=accounts.clock.now())

    assert refused.value.field == field
    assert ids_in("account_status#all") == []


def test_only_operators_change_the_pool(accounts: AccountsPool) -> None:
    [only] = accounts.fill(1)
    by: dict[str, Any] = {"actor": MALLORY, "now": accounts.clock.now()}
    deeds: list[Callable[[], object]] = [
        lambda: operations.add_accounts([NewAccount(TWO)], pool="default", **by),
        lambda: operations.retire(account_id=only, reason="No", **by),
        lambda: operations.quarantine(account_id=only, reason="No", **by),
        lambda: operations.restore(account_id=only, **by),
        lambda: operations.check_pool(is_mending=True, actor=MALLORY),
    ]

    for deed in deeds:
        with pytest.raises(NotAllowed):
            deed()
    assert ids_in("account_status#available") == [only]


def test_an_account_that_is_there_is_left_as_it_is(accounts: AccountsPool) -> None:
    accounts.fill(1)
    before = accounts.get(ONE)

    accounts.add([ONE])
    assert accounts.get(ONE) == before
    with pytest.raises(Conflict, match="in the pool default"):
        accounts.add([ONE], pool="other")


def test_one_that_was_here_before_counts_its_hand_overs_on(accounts: AccountsPool) -> None:
    accounts.fill(1)
    accounts.let_go(accounts.started(ALICE))
    operations.retire(account_id=ONE, reason="Gone", actor=OLGA, now=accounts.clock.now())
    with pytest.raises(NoSuchAccount):
        accounts.get(ONE)

    accounts.fill(1)

    assert accounts.taken(ALICE).fence == 2
    check_whole()


def test_one_that_is_lent_retires_when_it_is_given_back(accounts: AccountsPool) -> None:
    accounts.fill(1)
    lease = accounts.started(ALICE)
    for _ in range(2):
        assert operations.retire(account_id=ONE, reason="Gone", actor=OLGA, now=accounts.clock.now()).is_retiring
    assert ids_in("account_status#leased") == [ONE]

    accounts.let_go(lease)

    assert ids_in("account_status#all") == []
    assert queries.history_of_account(account_id=ONE).items[0].action == "account.retired"
    check_whole()


def test_one_that_is_lent_is_out_of_use_when_it_is_given_back(accounts: AccountsPool) -> None:
    accounts.fill(1)
    lease = accounts.started(ALICE)
    operations.quarantine(account_id=ONE, reason="Odd", actor=OLGA, now=accounts.clock.now())
    assert accounts.get(ONE).state is AccountState.LEASED

    accounts.let_go(lease)

    assert (accounts.get(ONE).state, accounts.get(ONE).reason) == (AccountState.FAILED, "Odd")
    restored = operations.restore(account_id=ONE, actor=OLGA, now=accounts.clock.now())
    assert (restored.state, restored.reason, restored.due_at) == (AccountState.DIRTY, "", accounts.clock.now())
    with pytest.raises(Conflict, match="nothing to restore"):
        operations.restore(account_id=ONE, actor=OLGA, now=accounts.clock.now())
    check_whole()


def test_one_that_was_to_leave_after_its_cleaning_and_is_restored_stays(accounts: AccountsPool) -> None:
    accounts.add([ONE])
    new = accounts.get(ONE)
    notes.note(new, replace(new, run="being cleaned"))
    now = accounts.clock.now()
    assert operations.retire(account_id=ONE, reason="Gone", actor=OLGA, now=now).is_retiring
    operations.quarantine(account_id=ONE, reason="Odd", actor=OLGA, now=now)

    operations.restore(account_id=ONE, actor=OLGA, now=now)
    accounts.clean(ONE)

    assert ids_in("account_status#available") == [ONE]
    check_whole()


def test_lists_of_accounts_and_leases(accounts: AccountsPool) -> None:
    accounts.fill(9)
    accounts.add(["999999999991"], pool="other")
    leases = [accounts.started(ALICE, most_held=9) for _ in range(3)]

    def walk(fetch: Callable[..., Any], **wanted: Any) -> list[Any]:
        found, cursor = [], None
        while True:
            page = fetch(cursor=cursor, limit=2, **wanted)
            found += page.items
            cursor = page.next_cursor
            if cursor is None:
                return found

    assert sorted(one.account_id for one in walk(queries.list_accounts)) == sorted([*account_ids(9), "999999999991"])
    assert sorted(one.account_id for one in walk(queries.list_accounts, pool="default")) == account_ids(9)
    assert len(walk(queries.list_accounts, pool="default", state=AccountState.AVAILABLE)) == 6
    assert [one.account_id for one in walk(queries.list_accounts, state=AccountState.INITIAL)] == ["999999999991"]
    assert sorted(one.lease_id for one in walk(queries.list_leases)) == sorted(one.lease_id for one in leases)
    assert walk(queries.list_leases, pool="other") == []
    assert [one.lease_id for one in queries.leases_of(user=ALICE)] == [one.lease_id for one in leases]
    assert queries.list_pools() == ("default", "other")
    counts = operations.count_accounts(clock=accounts.clock).pools["default"]
    assert {state.value: count for state, count in counts.items() if count} == {"available": 6, "leased": 3}
    with pytest.raises(InvalidRequest):
        queries.list_accounts(cursor="7:")


def test_the_pool_takes_no_more_than_a_list_can_hold(accounts: AccountsPool, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(lists, "MOST_ACCOUNTS", 2)
    accounts.add([ONE, TWO])

    with pytest.raises(ListFull, match="account_status#all holds 2 ids"):
        accounts.add(["999999999999"])

    report = operations.check_pool(is_mending=False, actor=OLGA)
    assert report.nearly_full == ("account_status#all", "account_status#initial")
    check_whole()


def test_differences_are_reported_and_mended(accounts: AccountsPool) -> None:
    accounts.fill(3)
    lease = accounts.started(ALICE)
    assert operations.check_pool(is_mending=True, actor=OLGA).is_ok
    free = ids_in("account_status#available")

    def put(name: str, ids: list[str]) -> None:
        table().update_item(Key={"pk": name}, UpdateExpression="SET #d = :ids", **_data(ids))

    def _data(ids: list[str]) -> dict[str, Any]:
        return {"ExpressionAttributeNames": {"#d": "data"}, "ExpressionAttributeValues": {":ids": ids}}

    put("account_status#available", [free[0], free[0], lease.account_id])
    put("lease_status#active", ["ended"])
    table().delete_item(Key={"pk": "account_status#all"})

    expected = (
        Difference("account_status#all", missing=tuple(account_ids(3))),
        Difference("account_status#available", missing=(free[1],), extra=tuple(sorted([free[0], lease.account_id]))),
        Difference("lease_status#active", missing=(lease.lease_id,), extra=("ended",)),
    )
    for is_mending in (False, True):
        report = operations.check_pool(is_mending=is_mending, actor=OLGA)
        assert (report.accounts, report.leases, report.differences) == (3, 1, expected)
    assert report.mended == 8
    check_whole()
    assert operations.check_pool(is_mending=False, actor=JOB).differences == ()


def test_two_who_mend_a_double_leave_one(accounts: AccountsPool) -> None:
    accounts.fill(1)
    name = "account_status#available"
    row, found = queries.get_account(account_id=ONE), [ONE, ONE]
    ListItem.get(name).update(actions=[ListItem.data.set(found)])

    rows.mend(name, ONE, row, found)
    with pytest.raises(ConditionFailed):
        rows.mend(name, ONE, row, found)

    assert ids_in(name) == [ONE]
    check_whole()


def test_a_list_that_lacks_an_id_stops_no_return(accounts: AccountsPool) -> None:
    accounts.fill(1)
    lease = accounts.started(ALICE)
    table().delete_item(Key={"pk": "account_status#leased"})
    table().delete_item(Key={"pk": "lease_status#active"})

    accounts.let_go(lease)

    check_whole()


def test_after_a_restore_fences_are_above_all_former_ones_and_what_is_free_is_cleaned_first(accounts: AccountsPool) -> None:
    accounts.fill(3)
    lease = accounts.started(ALICE)
    accounts.add(["999999999999"])
    now = accounts.clock.now()
    restored = audit.begin_restore(restored_to=now - timedelta(hours=1), actor=OLGA, now=now)

    report = operations.settle_restore(restored=restored, actor=OLGA, clock=accounts.clock)

    assert report.is_ok
    assert sorted(report.raised) == sorted([*account_ids(3), "999999999999"])
    assert {accounts.get(one).fence for one in report.raised} == {restored.epoch}
    assert ids_in("account_status#available") == []
    assert len(ids_in("account_status#dirty")) == 2
    assert queries.get_lease(lease_id=lease.lease_id).fence == restored.epoch
    assert operations.settle_restore(restored=restored, actor=OLGA, clock=accounts.clock).raised == ()
    assert accounts.let_go(lease).fence == restored.epoch
    check_whole()


def test_a_restore_settles_also_an_account_whose_lease_was_deleted(accounts: AccountsPool) -> None:
    accounts.fill(1)
    lease, now = accounts.started(ALICE), accounts.clock.now()
    table().delete_item(Key={"pk": f"lease_id#{lease.lease_id}"})
    restored = audit.begin_restore(restored_to=now - timedelta(hours=1), actor=OLGA, now=now)

    report = operations.settle_restore(restored=restored, actor=OLGA, clock=accounts.clock)

    assert (report.failures, report.raised) == ((), (ONE,))
    assert accounts.get(ONE).fence == restored.epoch
