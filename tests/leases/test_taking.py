"""Taking an account: who gets which, who waits, and what keeps one from having two holders."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import nullcontext
from datetime import timedelta
from typing import Any

import pytest

from accessportal.audit import operations as audit
from accessportal.kernel.errors import Conflict
from accessportal.kernel.ports import set_after_commit
from accessportal.kernel.proofs import Waiting
from accessportal.leases import operations, queries
from accessportal.leases.config import LeaseSettings
from accessportal.leases.models import LeaseItem
from accessportal.leases.operations import taking
from accessportal.leases.operations.lines import Asked
from accessportal.leases.states import Account, AccountState, Lease, LeaseState
from accessportal.leases.store import lists
from accessportal.store import transactions
from accessportal.store.transactions import Guard, Overtaken
from accessportal.waiting import operations as waiting
from accessportal.waiting import queries as line
from accessportal.waiting.states import ACCOUNTS
from tests.leases.conftest import ALICE, CARL, CERTIFICATE, JOB, OLGA, AccountsPool
from tests.leases.reading import check_whole, ids_in
from tests.sandboxes.test_requests import requests

BEA = "bea@example.com"


def code(found: Lease | Waiting) -> str:
    assert isinstance(found, Waiting)
    return found.code


def claims_in_line() -> list[str]:
    return [place.claim for place in line.places(ACCOUNTS)]


def test_a_take_hands_over_at_the_next_fence_and_repeated_gives_the_same(accounts: AccountsPool) -> None:
    accounts.fill(2)

    lease = accounts.taken(ALICE, claim="one")

    account = accounts.get(lease.account_id)
    assert (lease.state, lease.fence, lease.user, lease.started_at) == (LeaseState.STARTING, 1, ALICE, None)
    assert (account.state, account.fence, account.lease_id, account.user) == (AccountState.LEASED, 1, "one", ALICE)
    assert accounts.take(ALICE, claim="one") == lease
    assert len(ids_in("account_status#available")) == 1
    check_whole()


@pytest.mark.parametrize(
    ("wanted", "is_met"),
    [
        ({}, True),
        ({"size": "large"}, True),
        ({"size": "small"}, False),
        ({"tags": {"env": "lab"}}, True),
        ({"tags": {"env": "lab", "team": "red"}}, False),
        ({"pool": "other"}, False),
    ],
)
def test_only_what_fits_is_lent(accounts: AccountsPool, wanted: dict[str, Any], *, is_met: bool) -> None:
    accounts.fill(1, size="large", tags={"env": "lab"})

    assert isinstance(accounts.take(ALICE, **wanted), Lease) is is_met


def test_a_person_has_as_many_as_the_rule_lets_them_have(accounts: AccountsPool) -> None:
    accounts.fill(4)
    first = accounts.taken(ALICE, most_held=2)
    accounts.taken(ALICE, most_held=2)

    assert code(accounts.take(ALICE, most_held=2)) == "too_many_held"
    assert accounts.taken(CARL, most_held=1)
    accounts.let_go(first)
    assert accounts.taken(ALICE, most_held=2)


def test_nothing_is_lent_while_a_guard_does_not_hold(accounts: AccountsPool) -> None:
    accounts.fill(1)
    never = Guard(LeaseItem, "lease_id#none", LeaseItem.fence == 1)

    with pytest.raises(Conflict) as refused:
        accounts.take(ALICE, guards=[never])

    assert refused.value.code == "guard_failed"
    assert len(ids_in("account_status#available")) == 1


def test_nothing_is_lent_while_a_restore_is_not_confirmed(accounts: AccountsPool) -> None:
    accounts.fill(1)
    audit.begin_restore(restored_to=accounts.clock.now() - timedelta(hours=1), actor=OLGA, now=accounts.clock.now())

    assert code(accounts.take(ALICE)) == "grants_held"
    assert claims_in_line() == []


def test_what_becomes_free_goes_to_the_first_whom_it_fits(accounts: AccountsPool) -> None:
    [only] = accounts.fill(1, size="small")
    held = accounts.started(ALICE)
    for claim, user, size in (("big", ALICE, "large"), ("second", CARL, "small"), ("third", BEA, "")):
        assert code(accounts.take(user, claim=claim, size=size)) == "no_account_free"
    # Asking again gives no second place.
    assert code(accounts.take(CARL, claim="second", size="small")) == "no_account_free"
    assert claims_in_line() == ["big", "second", "third"]

    accounts.let_go(held)
    accounts.clean(only)

    lease = queries.get_lease(lease_id="second")
    assert (lease.account_id, lease.fence, lease.user) == (only, 2, CARL)
    assert accounts.get(only).certificate == CERTIFICATE
    assert claims_in_line() == ["big", "third"]
    assert ids_in("account_status#available") == []
    check_whole()


def test_what_is_lent_becomes_free_by_no_cleaning(accounts: AccountsPool) -> None:
    [only] = accounts.fill(1)
    lease = accounts.started(ALICE)

    with pytest.raises(Conflict) as refused:
        accounts.clean(only)

    assert refused.value.code == "not_to_be_cleaned"
    assert (accounts.get(only).state, accounts.get(only).lease_id) == (AccountState.LEASED, lease.lease_id)
    check_whole()


def test_who_has_as_many_as_they_may_is_passed_over_and_keeps_the_place(accounts: AccountsPool) -> None:
    first, second = accounts.fill(2)
    held = accounts.started(ALICE)
    other = accounts.started(ALICE)
    accounts.take(ALICE, claim="more", most_held=3)
    accounts.take(CARL, claim="carls")
    operations.add_accounts([operations.NewAccount("999999999999")], pool="default", actor=OLGA, now=accounts.clock.now())
    accounts.clean("999999999999")
    assert queries.get_lease(lease_id="more").account_id == "999999999999"
    accounts.take(ALICE, claim="too many", most_held=4)
    accounts.take(BEA, claim="beas")

    accounts.let_go(held)
    accounts.clean(held.account_id)
    assert queries.find_lease(lease_id="carls") is not None
    accounts.take(ALICE, claim="alices", most_held=3)
    accounts.let_go(other)
    accounts.clean(other.account_id)

    assert queries.find_lease(lease_id="too many") is not None
    assert {first, second} == {held.account_id, other.account_id}
    assert claims_in_line() == ["beas", "alices"]


def test_nobody_new_gets_what_is_free_before_those_who_wait(accounts: AccountsPool) -> None:
    accounts.fill(1)
    waiting.join(
        line=ACCOUNTS,
        claim="earlier",
        wants={
            "lease_id": "earlier",
            "user": CARL,
            "pool": "default",
            "permission_set": "P",
            "most_held": 1,
            "size": "",
            "tags": {},
        },
        duration_seconds=60,
        lapses_at=accounts.clock.now() + timedelta(hours=1),
        actor=JOB,
        now=accounts.clock.now(),
    )

    assert code(accounts.take(ALICE, claim="later")) == "no_account_free"
    report = operations.serve_line(actor=JOB, clock=accounts.clock)

    assert report.served == ("earlier",)
    assert queries.get_lease(lease_id="earlier").user == CARL
    assert claims_in_line() == ["later"]
    check_whole()


@pytest.mark.usefixtures("quick_look")
def test_whoever_waits_looks_with_one_request_and_takes_nothing_out_of_turn(
    accounts: AccountsPool, monkeypatch: pytest.MonkeyPatch
) -> None:
    accounts.fill(1, size="small")
    accounts.take(CARL, claim="carls", size="large")
    accounts.take(ALICE, claim="alices", size="small")

    with requests(monkeypatch) as asked:
        assert code(accounts.take(ALICE, claim="alices", size="small")) == "no_account_free"
    assert asked == ["BatchGetItem"]
    assert claims_in_line() == ["carls", "alices"]

    assert operations.serve_line(actor=JOB, clock=accounts.clock).served == ("alices",)
    assert accounts.taken(ALICE, claim="alices", size="small") == queries.get_lease(lease_id="alices")
    assert claims_in_line() == ["carls"]
    check_whole()


def test_the_line_is_served_at_once_where_others_in_it_wait_for_something_else(accounts: AccountsPool) -> None:
    [only] = accounts.fill(1, size="small")
    jobs: list[str] = []

    def enqueue(name: str, /, **_payload: str) -> None:
        jobs.append(name)

    replaced = set_after_commit(enqueue)
    try:
        accounts.take(CARL, claim="carls", size="large")
        assert jobs == []
        accounts.take(ALICE, claim="alices", size="small")
        assert jobs == ["serve_line"]
    finally:
        set_after_commit(replaced)

    assert operations.serve_line(actor=JOB, clock=accounts.clock).served == ("alices",)
    assert queries.get_lease(lease_id="alices").account_id == only
    assert claims_in_line() == ["carls"]


def test_an_account_that_may_not_go_out_is_set_aside_unseen(accounts: AccountsPool, monkeypatch: pytest.MonkeyPatch) -> None:
    ids = accounts.fill(3)
    bad = {ids[0], ids[2]}
    settings = LeaseSettings(flaw_of=lambda account_id: "It is suspended." if account_id in bad else "")
    monkeypatch.setattr("accessportal.leases.config._settings._value", settings)

    assert accounts.taken(ALICE).account_id == ids[1]
    assert code(accounts.take(CARL, claim="carls")) == "no_account_free"

    assert ids_in("account_status#failed") == sorted(bad)
    assert accounts.get(ids[0]).reason == "It is suspended."
    assert claims_in_line() == ["carls"]
    check_whole()


def test_what_was_cleaned_and_may_not_go_out_keeps_its_certificate(accounts: AccountsPool, monkeypatch: pytest.MonkeyPatch) -> None:
    [only] = accounts.fill(1)
    accounts.let_go(accounts.started(ALICE))
    accounts.take(CARL, claim="carls")
    accounts.clock.sleep(600)
    monkeypatch.setattr("accessportal.leases.config._settings._value", LeaseSettings(flaw_of=lambda _id: "It is suspended."))
    accounts.clean(only)

    account = accounts.get(only)
    assert (account.state, account.certificate, account.cleaned_at) == (AccountState.FAILED, CERTIFICATE, accounts.clock.now())
    told = queries.history_of_account(account_id=only).items[0]
    assert (told.action, told.data["certificate"]) == ("account.set_aside", CERTIFICATE)
    check_whole()


def test_a_take_asks_no_more_of_a_look_that_is_likelier_wrong(accounts: AccountsPool, monkeypatch: pytest.MonkeyPatch) -> None:
    ids = accounts.fill(9)
    for account_id in ids[:5]:
        operations.quarantine(account_id=account_id, reason="Broken", actor=OLGA, now=accounts.clock.now())
    looked: list[str] = []

    def flaw_of(account_id: str) -> str:
        looked.append(account_id)
        return "It is not listed."

    monkeypatch.setattr("accessportal.leases.config._settings._value", LeaseSettings(flaw_of=flaw_of))
    assert code(accounts.take(CARL, claim="carls")) == "no_account_free"
    assert len(looked) == 1
    assert claims_in_line() == ["carls"]


def test_a_look_that_finds_all_unfit_does_not_empty_the_pool(accounts: AccountsPool, monkeypatch: pytest.MonkeyPatch) -> None:
    ids = accounts.fill(8)
    monkeypatch.setattr("accessportal.leases.config._settings._value", LeaseSettings(flaw_of=lambda _id: "It is not listed."))

    assert code(accounts.take(CARL, claim="carls")) == "no_account_free"
    assert len(ids_in("account_status#failed")) == 5
    many = "Many of the pool default are out of use: look at them, and at Organizations."
    report = operations.serve_line(actor=JOB, clock=accounts.clock)
    assert (sorted(one.item for one in report.failures), report.served) == (sorted(ids_in("account_status#available")), ())
    assert {one.error for one in report.failures} == {f"It is not lent, and not put out of use: It is not listed. {many}"}
    accounts.add(["999999999999"])
    accounts.clean("999999999999")
    assert len(ids_in("account_status#available")) == 4

    monkeypatch.setattr("accessportal.leases.config._settings._value", LeaseSettings())
    assert operations.serve_line(actor=JOB, clock=accounts.clock).served == ("carls",)
    assert sorted(ids_in("account_status#all")) == sorted([*ids, "999999999999"])
    check_whole()


def test_a_lease_that_has_ended_is_not_lent_again(accounts: AccountsPool) -> None:
    accounts.fill(2)
    lease = accounts.started(ALICE, claim="one")
    accounts.let_go(lease)

    assert code(accounts.take(ALICE, claim="one")) == "lease_over"
    assert len(ids_in("account_status#available")) == 1
    check_whole()


def test_who_finds_as_many_lent_as_a_list_can_hold_waits(accounts: AccountsPool, monkeypatch: pytest.MonkeyPatch) -> None:
    ids = accounts.fill(2)
    monkeypatch.setattr(lists, "MOST_LEASES", 1)
    held = accounts.started(ALICE)

    assert code(accounts.take(CARL, claim="carls")) == "no_account_free"
    accounts.add(["999999999999"])
    accounts.clean("999999999999")
    assert len(ids_in("account_status#available")) == 2
    accounts.let_go(held)
    assert operations.serve_line(actor=JOB, clock=accounts.clock).served == ("carls",)
    assert ids_in("account_status#all") == sorted([*ids, "999999999999"])
    check_whole()


def before_the_next_write(monkeypatch: pytest.MonkeyPatch, act: Callable[[], object]) -> None:
    """Somebody else is faster: ``act`` happens right before the next transaction of the pool."""
    transact = transactions.transact

    def late(steps: Any) -> None:
        monkeypatch.setattr(lists, "transact", transact)
        act()
        transact(steps)

    # The other one must not wait for the lock that this one holds.
    monkeypatch.setattr(lists, "_one_at_a_time", nullcontext())
    monkeypatch.setattr(lists, "transact", late)


def test_two_who_take_one_account(accounts: AccountsPool, monkeypatch: pytest.MonkeyPatch) -> None:
    accounts.fill(1)
    before_the_next_write(monkeypatch, lambda: accounts.taken(CARL, claim="carls"))

    assert code(accounts.take(ALICE, claim="alices")) == "no_account_free"
    assert queries.get_lease(lease_id="carls").fence == 1
    check_whole()


def test_two_who_take_two_accounts_each_have_one(accounts: AccountsPool, monkeypatch: pytest.MonkeyPatch) -> None:
    accounts.fill(2)
    before_the_next_write(monkeypatch, lambda: accounts.taken(CARL, claim="carls"))

    alices = accounts.taken(ALICE, claim="alices")
    assert alices.account_id != queries.get_lease(lease_id="carls").account_id
    check_whole()


def test_a_take_against_a_retirement(accounts: AccountsPool, monkeypatch: pytest.MonkeyPatch) -> None:
    [only] = accounts.fill(1)
    now = accounts.clock.now()
    before_the_next_write(monkeypatch, lambda: operations.retire(account_id=only, reason="Gone", actor=OLGA, now=now))

    assert code(accounts.take(ALICE)) == "no_account_free"
    assert ids_in("account_status#all") == []
    check_whole()


def test_two_takes_for_one_claim_give_one_lease(accounts: AccountsPool, monkeypatch: pytest.MonkeyPatch) -> None:
    accounts.fill(3)
    before_the_next_write(monkeypatch, lambda: accounts.taken(ALICE, claim="one"))

    lease = accounts.taken(ALICE, claim="one")
    assert lease == queries.get_lease(lease_id="one")
    assert len(ids_in("account_status#available")) == 2
    check_whole()


def test_a_place_taken_between_the_look_and_the_freeing_is_served(accounts: AccountsPool, monkeypatch: pytest.MonkeyPatch) -> None:
    [only] = accounts.fill(1)
    accounts.let_go(accounts.started(ALICE))
    accounts.clock.sleep(600)
    before_the_next_write(monkeypatch, lambda: accounts.take(CARL, claim="carls"))

    with pytest.raises(Overtaken):
        accounts.clean(only)
    accounts.clean(only)

    assert queries.get_lease(lease_id="carls").account_id == only
    check_whole()


def test_who_is_served_between_the_look_and_the_place_gets_no_place(accounts: AccountsPool, monkeypatch: pytest.MonkeyPatch) -> None:
    [only] = accounts.fill(1)
    carls = accounts.started(CARL)
    look_for_free = taking.free_that_meet

    def look(_asked: Asked) -> Iterator[Account]:
        monkeypatch.setattr(taking, "free_that_meet", look_for_free)
        # By another worker with the same request.
        assert code(accounts.take(ALICE, claim="alices", most_held=1)) == "no_account_free"
        accounts.let_go(carls)
        accounts.clean(only)
        return iter(())

    monkeypatch.setattr(taking, "free_that_meet", look)
    assert accounts.taken(ALICE, claim="alices", most_held=1).account_id == only
    assert claims_in_line() == []
    check_whole()


def test_whoever_leaves_between_the_look_and_the_hand_over_gets_nothing(accounts: AccountsPool, monkeypatch: pytest.MonkeyPatch) -> None:
    [only] = accounts.fill(1)
    accounts.let_go(accounts.started(ALICE))
    accounts.take(CARL, claim="carls")
    accounts.take(BEA, claim="beas")
    now = accounts.clock.now()
    before_the_next_write(monkeypatch, lambda: waiting.leave(line=ACCOUNTS, claim="carls", actor=JOB, now=now))

    with pytest.raises(Overtaken):
        accounts.clean(only)
    accounts.clean(only)

    assert queries.find_lease(lease_id="carls") is None
    assert queries.get_lease(lease_id="beas").account_id == only
    check_whole()
