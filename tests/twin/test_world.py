"""The demo's cloud: what it holds, that making it twice adds nothing, and that it grows."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING

import pytest

from accessportal.twin.world import Seeded, seed_world
from accessportal.twin.world_plan import neighbours, plan_accounts, plan_permission_sets

if TYPE_CHECKING:
    from tests.fixtures_twin import Twin


@dataclass(frozen=True)
class Person:
    email: str
    name: str
    group: str


PEOPLE = (Person("alice@example.com", "Alice Archer", "/engineering/payments"), Person("mallory@example.com", "Mallory Moss", ""))


def test_the_accounts_of_the_story_are_where_the_rules_look_for_them() -> None:
    accounts = {one.name: one for one in plan_accounts(60)}
    assert len(accounts) == 60
    assert accounts["payments-dev"].path == "/Workloads/Dev"
    assert accounts["payments-prod"].path == "/Workloads/Prod/Payments"
    assert accounts["payments-prod"].tags == {"env": "prod", "team": "payments", "cost-centre": "cc-1010"}
    assert accounts["warehouse-prod"].tags["data"] == "warehouse"
    roots = {one.path.split("/")[1] for one in accounts.values()}
    assert roots == {"Workloads", "Security", "Infrastructure", "Sandbox"}
    assert max(one.path.count("/") for one in accounts.values()) == 5


@pytest.mark.parametrize(("accounts", "sets"), [(60, 12), (5000, 500)])
def test_names_are_used_once_and_fit_aws(accounts: int, sets: int) -> None:
    planned = plan_accounts(accounts)
    assert len({one.name for one in planned}) == accounts
    assert all(len(one.name) <= 50 and one.path.count("/") <= 5 for one in planned)
    planned_sets = plan_permission_sets(sets)
    assert len({one.name for one in planned_sets}) == sets
    assert all(len(one.name) <= 32 and re.fullmatch(r"PT([1-9]|1[0-2])H", one.session) for one in planned_sets)
    assert len({one.email for one in neighbours()}) == 20


def test_a_second_seeding_adds_nothing_and_a_larger_one_the_rest(twin: Twin) -> None:
    first = seed_world(accounts=8, permission_sets=5, people=PEOPLE)
    # payments-dev and three permission sets are in the small world already, and so are Alice, Mallory and Alice's group.
    assert (first.accounts, first.permission_sets, first.users) == (7, 2, 20)
    assert seed_world(accounts=8, permission_sets=5, people=PEOPLE) == Seeded(0, 0, 0, 0, 0, 0)
    larger = seed_world(accounts=12, permission_sets=6, people=[*PEOPLE, Person("sam@example.com", "Sam Suzuki", "/security")])
    assert (larger.accounts, larger.permission_sets, larger.users, larger.groups, larger.memberships) == (4, 1, 1, 0, 1)
    names = [account["Name"] for page in twin.organizations.get_paginator("list_accounts").paginate() for account in page["Accounts"]]
    assert len(names) == len(set(names))


def test_an_account_that_a_cut_off_run_left_at_the_root_is_moved(twin: Twin) -> None:
    left = twin.organizations.create_account(AccountName="payments-ledger-dev", Email="l@example.com")["CreateAccountStatus"]["AccountId"]
    seed_world(accounts=2, permission_sets=1)
    parents = twin.organizations.list_parents(ChildId=left)["Parents"]
    assert parents[0]["Id"] == twin.organizational_units["/Workloads/Dev"]


def test_progress_is_told_for_each_kind(twin: Twin) -> None:
    told: list[tuple[str, int, int]] = []
    seed_world(accounts=3, permission_sets=2, people=PEOPLE, progress=lambda what, done, of: told.append((what, done, of)))
    assert told[2] == ("accounts", 3, 3)
    assert ("permission sets", 2, 2) in told
    assert told[-1] == ("people", 22, 22)
    assert twin.assignments() == set()
