"""Cleaning, and holding the pools against their units, from a terminal."""

from __future__ import annotations

import pytest

from tests.commands.conftest import Ran, run
from tests.conftest import FakeClock
from tests.leases.conftest import Cleaning

pytestmark = pytest.mark.usefixtures("at_the_clock")
NOBODYS = "111111111111"


@pytest.fixture
def at_the_clock(clock: FakeClock, monkeypatch: pytest.MonkeyPatch) -> None:
    """Commands ask the test's clock."""
    monkeypatch.setattr("accessportal.commands.base.SystemClock", lambda: clock)


def done(name: str, *arguments: str) -> Ran:
    told = run(name, *arguments)
    assert told.code == 0, told.problem
    return told


def test_cleaning_by_hand_begins_goes_on_and_refuses_what_must_not_be_cleaned(cleaning: Cleaning, clock: FakeClock) -> None:
    (first, second) = cleaning.fill("one", "two")
    begun = done("clean_accounts", "--json").json
    assert sorted(begun["begun"]) == sorted([first, second])
    clock.advance(3_600)
    assert sorted(done("clean_accounts", "--json").json["cleaned"]) == sorted([first, second])

    cleaning.accounts.started()
    (lent,) = done("list_pool", "--state", "leased", "--json").json["accounts"]
    refused = run("clean_accounts", "--account", lent["account_id"], "--json")
    assert refused.code == 1
    assert "is not cleaned" in refused.problem
    assert run("clean_accounts", "--account", NOBODYS, "--json").json["error"]["code"] == "account_not_found"


def test_the_pool_follows_its_units_by_hand_with_the_brake(cleaning: Cleaning) -> None:
    made = cleaning.make(*(f"lab-{number}" for number in range(6)))
    plan = done("sync_pool", "--dry-run", "--json").json
    assert (set(made) <= set(plan["new"]), plan["is_applied"]) == (True, False)
    done("sync_pool")
    for account_id in made:
        cleaning.move(account_id, "/Security")

    stopped = run("sync_pool", "--json")
    assert stopped.code == 1
    assert stopped.json["gone"] == []
    assert "would leave it" in stopped.problem
    assert done("sync_pool", "--most-share", "1", "--json").json["gone"]
    assert "is not a share" in run("sync_pool", "--most-share", "2").problem
