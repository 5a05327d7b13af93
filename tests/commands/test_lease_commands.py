"""The pool of AWS accounts and its leases from a terminal: what is printed, what exits with which code, and who may."""

from __future__ import annotations

from typing import Any

import pytest

from accessportal.access_requests import queries as requests
from accessportal.access_requests.states import AccessRequest
from accessportal.kernel.actors import system
from accessportal.kernel.clock import SystemClock
from accessportal.leases import operations as leases
from tests.commands.conftest import Ran, run
from tests.fixtures_accounts import DAY, Borrowed
from tests.leases.reading import table

OLGA, ALICE = ("--as", "olga@example.com"), ("--as", "alice@example.com")
ONE, TWO = "111111111111", "222222222222"
LEASE = ("--pool", "labs", "--size", "small", "--permission-set", "PowerUserAccess", "--reason", "Workshop")
WHY = ("--reason", "It mines coins.")


@pytest.fixture
def at(borrowed: Borrowed, monkeypatch: pytest.MonkeyPatch) -> Borrowed:
    """Commands ask the story's clock."""
    monkeypatch.setattr("accessportal.commands.base.SystemClock", lambda: borrowed.story.clock)
    return borrowed


def request(request_id: str) -> AccessRequest:
    """As it stands."""
    return requests.get(request_id=request_id, actor=system("test"), now=SystemClock().now())


def done(name: str, *arguments: str) -> Ran:
    told = run(name, *arguments)
    assert told.code == 0, told.problem
    return told


def test_accounts_come_in_are_shown_and_leave(at: Borrowed) -> None:
    added = done("add_accounts", f"{ONE}, {TWO}", "--pool", "labs", "--size", "small", "--tag", "env=dev", *OLGA, "--json").json
    assert [(one["account_id"], one["state"], one["size"], one["tags"]) for one in added["accounts"]] == [
        (ONE, "initial", "small", {"env": "dev"}),
        (TWO, "initial", "small", {"env": "dev"}),
    ]
    # Again: what is in it stays as it is.
    assert done("add_accounts", ONE, "--pool", "labs", "--name", "Other", *OLGA, "--json").json["accounts"][0]["name"] == ""

    assert {one["account_id"] for one in done("list_pool", "--json").json["accounts"]} == {ONE, TWO}
    assert done("list_pool", "--pool", "labs", "--state", "available").lines == ["None."]
    assert ONE in done("list_pool", "--pool", "labs", "--state", "initial").out
    shown = done("show_account", ONE)
    assert {f"account_id: {ONE}", "state: initial", "pool: labs"} <= set(shown.lines)
    assert "account.added" in shown.lines[-1]

    assert done("retire_account", TWO, *WHY, *OLGA, "--json").json["account_id"] == TWO
    gone = run("show_account", TWO, "--json")
    assert (gone.code, gone.json["error"]["code"]) == (1, "account_not_found")


def test_an_account_is_borrowed_and_given_back(at: Borrowed) -> None:
    (account_id,) = at.fill(1)

    asked = done("lease_account", *LEASE, "--duration", "2h", *ALICE, "--json").json
    assert (asked["kind"], asked["status"], asked["duration_seconds"]) == ("account_lease", "ACTIVE", 7_200)
    held = at.story.carry_out(request(asked["request_id"]))
    shown = done("show_account", account_id, "--json").json
    assert (shown["state"], shown["user"], shown["lease"]["lease_id"]) == ("leased", "alice@example.com", asked["request_id"])
    assert [event["action"] for event in shown["history"]] == ["account.added", "account.cleaned", "account.leased"]

    foreign = run("return_account", account_id, "--as", "mallory@example.com", "--json")
    assert (foreign.code, foreign.json["error"]["code"]) == (1, "request_not_found")
    returned = done("return_account", account_id, *ALICE, "--json").json
    assert (returned["request_id"], returned["work"]) == (held.request_id, "REVOKE")
    assert run("return_account", account_id, *ALICE, "--json").json["error"]["code"] == "already_ending"
    at.story.carry_out(request(held.request_id))
    assert run("return_account", account_id, *ALICE, "--json").json["error"]["code"] == "not_leased"


def test_what_extends_a_lease_is_given_back_with_it(at: Borrowed) -> None:
    (account_id,) = at.fill(1)
    first = at.held()
    at.story.clock.advance(60)
    second = at.story.carry_out(at.story.extend(first, 2 * DAY))

    done("return_account", account_id, *ALICE)

    assert {request(one.request_id).work for one in (first, second)} == {"REVOKE"}


def test_an_account_is_given_back_also_while_an_extension_is_not_granted_yet(at: Borrowed) -> None:
    (account_id,) = at.fill(1)
    first = at.held()
    at.story.clock.advance(60)
    second = at.story.extend(first, 2 * DAY)
    # It was frozen after that was approved.
    now = at.story.clock.now()
    leases.freeze(lease_id=first.request_id, reason="Too dear", actor=at.story.olga, now=now)
    at.story.carry_out(second)

    done("return_account", account_id, *ALICE)

    assert {request(one.request_id).work for one in (first, second)} == {"REVOKE"}


def test_whoever_waits_is_told_the_place(at: Borrowed) -> None:
    at.fill(1)
    at.held(actor=at.story.bob)
    for _ in range(2):
        told = done("lease_account", *LEASE, *ALICE, "--json").json
        at.story.carry_out(request(told["request_id"]))

    assert done("show_request", told["request_id"], "--json").json["place"]["before"] == 1
    assert "'before': 1" in done("show_request", told["request_id"]).out


def test_a_lease_is_frozen_and_unfrozen(at: Borrowed) -> None:
    at.fill(1)
    lease_id = at.held().request_id

    assert done("freeze_lease", lease_id, *WHY, *OLGA, "--json").json["wanted"] == "frozen"
    leases.note_access_off(lease_id=lease_id, actor=system("test"), now=at.story.clock.now())
    told = done("unfreeze_lease", lease_id, *OLGA)
    assert {"wanted: active", "freeze_reason: It mines coins."} <= set(told.lines)
    assert run("freeze_lease", "nothing", *WHY, *OLGA, "--json").json["error"]["code"] == "lease_not_found"


def test_a_list_that_is_not_as_the_rows_say_is_found_and_mended(at: Borrowed) -> None:
    (account_id,) = at.fill(1)
    assert done("check_pool", "--json").json["differences"] == []
    items = table()
    items.update_item(Key={"pk": "account_status#available"}, UpdateExpression="SET #d = :none", **_data([]))

    told = run("check_pool")
    assert (told.code, told.problem) == (1, "1 list is not as its rows say; --mend makes it so.")
    assert f"account_status#available: missing {account_id}" in told.lines
    assert "mended: 1" in done("check_pool", "--mend").lines
    assert done("check_pool", "--json").json["differences"] == []


@pytest.mark.parametrize("arguments", [("clean_accounts",), ("clean_accounts", "--account", ONE), ("sync_pool",), ("read_spend",)], ids=str)
def test_what_is_not_switched_on_is_told_and_calls_nothing(at: Borrowed, arguments: tuple[str, ...]) -> None:
    told = run(*arguments, "--json")

    assert told.code == 1
    assert told.json["error"]["code"] in {"no_cleaner", "no_units", "costs_off"}


def _data(ids: list[str]) -> dict[str, Any]:
    return {"ExpressionAttributeNames": {"#d": "data"}, "ExpressionAttributeValues": {":none": ids}}


@pytest.mark.parametrize(
    "arguments",
    [
        ("add_accounts", TWO, "--pool", "labs"),
        ("retire_account", ONE, *WHY),
        ("freeze_lease", "some", *WHY),
        ("unfreeze_lease", "some"),
    ],
    ids=lambda arguments: arguments[0],
)
def test_only_operators_change_the_pool(at: Borrowed, arguments: tuple[str, ...]) -> None:
    done("add_accounts", ONE, "--pool", "labs", *OLGA)

    refused = run(*arguments, *ALICE, "--json")

    assert (refused.code, refused.json["error"]["code"]) == (1, "operators_only")
    assert [one["account_id"] for one in done("list_pool", "--json").json["accounts"]] == [ONE]


@pytest.mark.parametrize(
    ("arguments", "code", "field"),
    [
        (("add_accounts", "1234", "--pool", "labs", *OLGA), 1, "account_id"),
        (("add_accounts", f"{ONE},12345678901a", "--pool", "labs", *OLGA), 1, "account_id"),
        (("add_accounts", "١١١١١١١١١١١١", "--pool", "labs", *OLGA), 1, "account_id"),
        (("add_accounts", ONE, "--pool", "Work shop", *OLGA), 1, "pool"),
        (("add_accounts", ONE, "--pool", "x" * 10_000, *OLGA), 1, "pool"),
        (("add_accounts", ONE, "--pool", "labs", "--size", "a\u202eb", *OLGA), 1, "size"),
        (("add_accounts", ONE, "--pool", "labs", "--tag", "env", *OLGA), 2, "--tag"),
        (("add_accounts", ONE, "--pool", "labs", "--name", "x" * 10_000, *OLGA), 1, "name"),
        (("add_accounts", f"{ONE},{TWO}", "--pool", "labs", "--name", "Both", *OLGA), 2, "--name"),
        (("retire_account", ONE, "--reason", " ", *OLGA), 1, "reason"),
        (("freeze_lease", "some", "--reason", "", *OLGA), 1, "reason"),
        (("lease_account", *LEASE, "--duration", "soon", *ALICE), 2, "--duration"),
        (("lease_account", *LEASE, "--duration", "1s", *ALICE), 1, "duration"),
        (("lease_account", *LEASE, "--duration", "900d", *ALICE), 1, "duration"),
        (("lease_account", *LEASE, "--tags", "env", *ALICE), 1, "tags"),
        (("lease_account", "--pool", "labs", "--permission-set", "NoSuch", "--reason", "x", *ALICE), 1, "permission_set"),
    ],
    ids=lambda value: " ".join(value)[:60] if isinstance(value, tuple) else str(value),
)
def test_what_can_not_be_is_told_by_its_field(at: Borrowed, arguments: tuple[str, ...], code: int, field: str) -> None:
    refused = run(*arguments, "--json")

    assert (refused.code, refused.json["error"]["field"]) == (code, field)
    assert done("list_pool").lines == ["None."]
    assert requests.list_open(subject_id="alice@example.com") == ()
