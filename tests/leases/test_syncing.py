"""The pools against their organizational units: what comes in, what leaves, and the brake."""

from __future__ import annotations

from typing import Any

import pytest

from accessportal.aws.errors import Transient
from accessportal.kernel.errors import Conflict, NotAllowed, Unavailable
from accessportal.leases import operations
from accessportal.leases.states import AccountState, SyncReport
from tests.fixtures_twin import MANAGEMENT_ACCOUNT, refuse, when
from tests.leases.conftest import JOB, MALLORY, OLGA, Cleaning
from tests.leases.reading import lists, lists_by_rows

GONE = "It is no longer an active account below the organizational units of its pool."


def sync(cleaning: Cleaning, **changed: Any) -> SyncReport:
    asked: dict[str, Any] = {"apply": True, "clock": cleaning.clock, **changed}
    return operations.sync_pool(**asked)


def filled(cleaning: Cleaning, count: int) -> list[str]:
    """So many more accounts of the unit, all of them in the pool and free."""
    cleaning.make(*(f"lab-{number:02}" for number in range(count)))
    ids = list(sync(cleaning).new)
    for one in ids:
        cleaning.accounts.clean(one)
    return ids


def test_accounts_below_the_unit_come_in_with_their_name_tags_and_size(cleaning: Cleaning) -> None:
    (deep,) = cleaning.make("deep", path="/Pool/Deeper/Still")
    (denied, closed) = cleaning.make("denied", "closed")
    cleaning.twin.organizations.tag_resource(ResourceId=deep, Tags=[{"Key": "size", "Value": "Small"}, {"Key": "env", "Value": "dev"}])
    cleaning.twin.organizations.close_account(AccountId=closed)
    cleaning.set(never=frozenset({denied}))
    seen = sync(cleaning, apply=False)
    assert (seen.is_applied, lists()) == (False, {})
    report = sync(cleaning)
    first = next(one for one in report.new if one != deep)
    assert (sorted(report.new), report.gone, report.is_ok, report.listed, report.known) == (sorted([deep, first]), (), True, 2, 0)
    account = cleaning.accounts.get(deep)
    assert (account.name, account.pool, account.size, dict(account.tags), account.state) == (
        "deep",
        "default",
        "small",
        {"size": "Small", "env": "dev"},
        AccountState.INITIAL,
    )
    again = sync(cleaning)
    assert (again.new, again.gone, again.listed, again.known) == ((), (), 2, 2)
    assert cleaning.actions(deep) == ["added"]
    assert lists() == lists_by_rows()


def test_what_is_no_longer_there_leaves_at_once_or_when_it_is_given_back(cleaning: Cleaning) -> None:
    moved, closed, lent, stays = filled(cleaning, 3)
    for one in (moved, closed, stays):
        operations.quarantine(account_id=one, reason="kept for the story", actor=JOB, now=cleaning.clock.now())
    lease = cleaning.accounts.started()
    assert lease.account_id == lent
    cleaning.move(moved, "/Workloads")
    cleaning.move(lent, "/Workloads")
    cleaning.twin.organizations.close_account(AccountId=closed)
    report = sync(cleaning)
    assert (sorted(report.gone), report.is_ok) == (sorted([moved, closed, lent]), True)
    assert cleaning.accounts.get(lent).is_retiring
    assert lists()["all"] == sorted([lent, stays])
    assert cleaning.events(moved, "retired")[0]["reason"] == GONE
    assert sync(cleaning).gone == ()
    cleaning.accounts.let_go(lease)
    assert lists()["all"] == [stays]
    assert cleaning.runs() == []
    assert lists() == lists_by_rows()


def test_too_many_at_once_stay_and_new_ones_come_in_all_the_same(cleaning: Cleaning) -> None:
    ids = filled(cleaning, 9)
    for one in ids[:6]:
        cleaning.move(one, "/Workloads")
    (new,) = cleaning.make("new")
    report = sync(cleaning)
    words = "6 of 10 accounts of the pool default would leave it, more than the share of 20% that may go at once. "
    assert report.stopped == f"{words}Look at its organizational units, then run it again with a larger share."
    assert (report.new, report.gone, report.is_ok) == ((new,), (), False)
    assert lists()["all"] == sorted([*ids, new])
    assert len(sync(cleaning, most_share=1).gone) == 6
    assert lists()["all"] == sorted([*ids[6:], new])


def test_an_account_that_only_the_list_lacks_stays(cleaning: Cleaning) -> None:
    one, _ = filled(cleaning, 1)
    found = cleaning.twin.organizations.list_accounts_for_parent(ParentId=cleaning.twin.organizational_units["/Pool"])
    found["Accounts"] = [account for account in found["Accounts"] if account["Id"] != one]
    with when("ListAccountsForParent", lambda _asked: found):
        report = sync(cleaning)
    assert [(failure.item, failure.error) for failure in report.failures] == [
        (one, "AWS lists it no longer, and yet it is there. It stays; look at it.")
    ]
    assert one in lists()["all"]


def test_an_account_below_another_pools_unit_moves_in_two_looks(cleaning: Cleaning) -> None:
    one, other = filled(cleaning, 1)
    cleaning.make("elsewhere", path="/Other")
    units = cleaning.twin.organizational_units
    cleaning.set(units={units["/Pool"]: "default", units["/Other"]: "workshop"})
    cleaning.move(one, "/Other")
    first = sync(cleaning)
    assert (first.elsewhere, first.gone) == ((one,), (one,))
    assert sync(cleaning).new == (one,)
    assert (cleaning.accounts.get(one).pool, cleaning.accounts.get(other).pool) == ("workshop", "default")
    # One pool alone is looked at.
    cleaning.move(other, "/Other")
    assert sync(cleaning, pool="workshop").gone == ()
    with pytest.raises(Conflict, match="No organizational unit is set for this pool"):
        sync(cleaning, pool="nobody")


def test_what_somebody_retired_comes_back_by_hand_alone(cleaning: Cleaning) -> None:
    ids, theirs = filled(cleaning, 2), cleaning.accounts.started()
    lent, free = theirs.account_id, next(one for one in ids if one != theirs.account_id)
    for one in (free, lent):
        operations.retire(account_id=one, reason="It is the payments team's now", actor=OLGA, now=cleaning.clock.now())
    cleaning.accounts.let_go(theirs)
    runs = cleaning.runs()

    report = sync(cleaning)
    assert (report.new, sorted(report.kept_out), report.is_ok) == ((), sorted([free, lent]), True)
    cleaning.clock.advance(600)
    cleaning.run()
    assert cleaning.runs() == runs
    cleaning.accounts.add([free])
    assert sync(cleaning).kept_out == (lent,)
    # It leaves by itself, so it comes in by itself.
    cleaning.move(free, "/Workloads")
    assert sync(cleaning).gone == (free,)
    cleaning.move(free, "/Pool")
    assert sync(cleaning).new == (free,)
    assert lists() == lists_by_rows()


def test_a_list_that_is_not_whole_changes_nothing(cleaning: Cleaning, monkeypatch: pytest.MonkeyPatch) -> None:
    ids = filled(cleaning, 2)
    with when("ListOrganizationalUnitsForParent", refuse("AccessDeniedException")), pytest.raises(Unavailable, match="could not be read"):
        sync(cleaning)
    cleaning.set(units={"ou-abcd-11111111": "default"})
    with pytest.raises(Unavailable, match="ParentNotFoundException"):
        sync(cleaning)

    def silent(**_asked: Any) -> None:
        raise Transient("NoAnswer", "no answer")

    monkeypatch.setattr("accessportal.aws.organizations.read_accounts", silent)
    with pytest.raises(Unavailable):
        sync(cleaning)
    assert lists()["all"] == sorted(ids)


def test_an_account_whose_tags_can_not_be_read_comes_in_with_the_next_look(cleaning: Cleaning) -> None:
    (tagged,) = cleaning.make("tagged")
    cleaning.twin.organizations.tag_resource(ResourceId=tagged, Tags=[{"Key": "size", "Value": "small"}])
    with when("ListTagsForResource", refuse("AccessDeniedException")):
        failures = {failure.item: failure.error for failure in sync(cleaning).failures}
    assert "tags could not be read" in failures[tagged]
    assert lists() == {}
    assert sync(cleaning).is_ok
    assert cleaning.accounts.get(tagged).size == "small"


def test_the_management_account_comes_into_no_pool(cleaning: Cleaning) -> None:
    root = cleaning.twin.organizational_units["/"]
    unit = cleaning.twin.organizational_units["/Pool"]
    cleaning.twin.organizations.move_account(AccountId=MANAGEMENT_ACCOUNT, SourceParentId=root, DestinationParentId=unit)
    assert MANAGEMENT_ACCOUNT not in sync(cleaning).new


def test_strangers_may_not_and_without_a_unit_nothing_is_called(cleaning: Cleaning) -> None:
    with pytest.raises(NotAllowed):
        sync(cleaning, actor=MALLORY)
    cleaning.set(units={})
    assert not operations.has_units()
    with when("DescribeOrganization", refuse("NotToBeCalled")), pytest.raises(Conflict):
        sync(cleaning)
