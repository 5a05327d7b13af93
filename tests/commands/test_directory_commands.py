"""The directory from a terminal: what each command changes, says and refuses."""

from __future__ import annotations

from datetime import timedelta

import pytest

from accessportal.audit import queries as audit
from accessportal.directory import operations, queries
from accessportal.directory.operations.claims import add_claim
from accessportal.directory.states import Changed, Claim, Group, GroupRole, Mirrored, State
from accessportal.kernel.actors import system
from accessportal.kernel.errors import NotAllowed
from accessportal.rules import operations as rules
from tests.commands.conftest import by_olga, run
from tests.conftest import FakeClock

ALICE = ("--as", "alice@example.com")
BOB = ("--as", "bob@example.com")
MALLORY = ("--as", "mallory@example.com")
OLGA = ("--as", "olga@example.com")
ANA = ("--as", "ana@example.com")
OTTO = ("--as", "otto@example.com")
RULES = """
rules:
  - name: prod-readonly
    kind: aws_account
    effect: allow
    subjects: {groups: [/engineering]}
    targets: {ous: [/Prod]}
    permission_sets: [ReadOnlyAccess]
    duration: {max: 4h}
    approval: {required: true, approvers: {groups_only: [/security]}}
"""
STAYS = "What they hold by requests ends within a minute, and what they still wait for is cancelled."


def role_of(email: str, group_id: str, clock: FakeClock) -> GroupRole | None:
    return queries.role_on(email=email, group_id=group_id, now=clock.now())


def test_the_founder_is_admin_of_everything_and_operator(town: FakeClock) -> None:
    assert role_of("olga@example.com", "/engineering/payments", town) is GroupRole.ADMIN
    assert "/portal/operators" in queries.groups_of(email="olga@example.com", now=town.now())


def test_founding_again_changes_nothing_and_another_founder_is_refused(town: FakeClock) -> None:
    again = run("found_directory", "--admin", "Olga@example.com", "--name", "Olga Berg", "--json")
    other = run("found_directory", "--admin", "mallory@example.com", "--name", "Mallory", "--json")

    assert (again.code, other.code) == (0, 1)
    assert again.json["record"]["group_id"] == "/"
    assert other.json["error"]["code"] == "directory_founded"
    assert role_of("mallory@example.com", "/", town) is None


def test_an_admin_makes_a_group_below_theirs(town: FakeClock) -> None:
    told = run("create_group", "/engineering/web", "--name", "Web", "--description", "The shop", *ALICE, "--json")

    assert told.code == 0
    assert told.json["did"] == "/engineering/web was created below /engineering."
    assert told.json["record"] | {"audit_head": ""} == {
        "group_id": "/engineering/web",
        "name": "Web",
        "description": "The shop",
        "state": "enabled",
        "ancestors": ["/", "/engineering"],
        "member_count": 0,
        "child_count": 0,
        "tree_version": told.json["record"]["tree_version"],
        "admins": [],
        "standing_admins": [],
        "version": 1,
        "created_at": "2026-03-02T09:00:00+00:00",
        "audit_head": "",
    }
    assert told.json["mirror"] == {"is_done": True, "reason": ""}
    elsewhere = ["create_group", "/design", "--name", "Design", "--parent", "/engineering"]
    assert run(*elsewhere, *ALICE, "--json").json["error"]["code"] == "group_admins_only"
    assert by_olga(*elsewhere).lines == ["/design was created below /engineering."]


def test_a_group_is_renamed_and_keeps_its_description(town: FakeClock) -> None:
    run("create_group", "/engineering/web", "--name", "Web", "--description", "The shop", *ALICE)

    assert run("rename_group", "/engineering/web", "--name", "Shop", *ALICE).lines == ["/engineering/web is called Shop now."]
    found = queries.find_group(group_id="/engineering/web")
    assert found is not None
    assert (found.name, found.description) == ("Shop", "The shop")
    assert run("rename_group", "/engineering/web", "--name", "Shop", "--description", "", *ALICE).code == 0
    assert run("rename_group", "/nowhere", "--name", "Shop", *ALICE, "--json").json["error"]["code"] == "group_not_found"


def test_a_group_moves_with_what_is_below_it(town: FakeClock) -> None:
    told = run("move_group", "/engineering/payments", "--parent", "/security", *OLGA)

    assert told.lines == ["/engineering/payments is below /security now."]
    assert role_of("alice@example.com", "/engineering/payments/ledger", town) is None
    listed = run("list_groups", "--under", "/security", *BOB, "--json").json["groups"]
    assert [group["group_id"] for group in listed] == ["/engineering/payments", "/engineering/payments/ledger"]
    refused = run("move_group", "/security", "--parent", "/engineering/payments/ledger", *OLGA, "--json")
    assert (refused.code, refused.json["error"]["field"]) == (1, "parent_id")


def test_a_group_is_disabled_enabled_and_deleted(town: FakeClock) -> None:
    assert run("disable_group", "/engineering/payments", *ALICE).lines == ["/engineering/payments is disabled now."]
    assert role_of("bob@example.com", "/engineering/payments", town) is None
    assert run("disable_group", "/engineering/payments", *ALICE, "--json").json["error"]["code"] == "group_state_unchanged"
    assert run("enable_group", "/engineering/payments", *ALICE).lines == ["/engineering/payments is enabled now."]
    assert role_of("bob@example.com", "/engineering/payments", town) is GroupRole.READER

    assert run("delete_group", "/engineering/payments", *ALICE, "--json").json["error"]["code"] == "group_not_empty"
    assert run("delete_group", "/engineering/payments/ledger", *ALICE).lines == ["/engineering/payments/ledger was deleted."]
    assert queries.find_group(group_id="/engineering/payments/ledger") is None


def test_an_admin_takes_somebody_in(town: FakeClock) -> None:
    told = run("create_user", "Carl@example.com", "--name", "Carl", "--group", "/engineering", "--role", "reader", *ALICE, "--json")

    assert told.json["did"] == "Carl@example.com was created and is reader of /engineering."
    assert (told.json["record"]["email"], told.json["record"]["key"]) == ("Carl@example.com", "carl@example.com")
    assert role_of("carl@example.com", "/engineering/payments", town) is GroupRole.READER
    assert by_olga("create_user", "dora@example.com", "--name", "Dora").lines == ["dora@example.com was created."]


@pytest.mark.parametrize(("given", "missing"), [(("--group", "/security"), "--role"), (("--role", "reader"), "--group")])
def test_group_and_role_go_together(town: FakeClock, given: tuple[str, ...], missing: str) -> None:
    told = run("create_user", "carl@example.com", "--name", "Carl", *given, *OLGA, "--json")

    assert (told.code, told.json["error"]["field"]) == (2, missing)
    assert queries.find_person(email="carl@example.com") is None


def test_what_a_request_gives_besides_is_told(town: FakeClock) -> None:
    claim = Claim("r-1", GroupRole.CONTRIBUTOR, ends_at=town.now() + timedelta(hours=1))
    by_olga("grant_role", "mallory@example.com", "/engineering/payments", "reader")
    add_claim(email="mallory@example.com", group_id="/engineering/payments", claim=claim, guards=(), actor=system("setup"), now=town.now())

    assert run("revoke_role", "mallory@example.com", "/engineering/payments", *ALICE).lines == [
        "The role of mallory@example.com in /engineering/payments was revoked. By a request they stay in it, as contributor, until its end."
    ]


def test_a_role_is_granted_changed_and_revoked(town: FakeClock) -> None:
    given = run("grant_role", "mallory@example.com", "/engineering/payments", "reader", *ALICE)
    changed = run("grant_role", "mallory@example.com", "/engineering/payments", "contributor", *ALICE)
    same = run("grant_role", "mallory@example.com", "/engineering/payments", "contributor", *ALICE, "--json")

    assert given.lines == ["mallory@example.com is reader of /engineering/payments now."]
    assert changed.lines == ["mallory@example.com is contributor of /engineering/payments now."]
    assert same.json["error"]["code"] == "membership_exists"
    assert role_of("mallory@example.com", "/engineering/payments", town) is GroupRole.CONTRIBUTOR

    assert "1 member" in run("show_group", "/engineering", *ALICE).lines
    by_olga("grant_role", "mallory@example.com", "/security", "reader")
    assert run("revoke_role", "mallory@example.com", "/engineering/payments", *ALICE).lines == [
        "The role of mallory@example.com in /engineering/payments was revoked."
    ]
    # Mallory came into no group, and Bob into this one.
    assert by_olga("revoke_role", "mallory@example.com", "/security", "--json").json["record"]["email"] == "mallory@example.com"
    last = by_olga("revoke_role", "bob@example.com", "/engineering/payments", "--json")
    assert last.json["record"] is None
    assert last.json["did"].endswith(f"Nothing else was left, so the person was deleted. {STAYS}")
    assert queries.find_person(email="bob@example.com") is None


def test_a_person_is_renamed_disabled_enabled_and_deleted(town: FakeClock) -> None:
    assert by_olga("rename_user", "bob@example.com", "--name", "Bob Baker").lines == ["bob@example.com is called Bob Baker now."]
    assert by_olga("disable_user", "bob@example.com").lines == ["bob@example.com is disabled now."]
    refused = run("list_groups", *BOB, "--json")
    assert (refused.code, refused.json["error"]["code"]) == (1, "person_disabled")
    assert by_olga("enable_user", "bob@example.com").lines == ["bob@example.com is enabled now."]
    assert by_olga("delete_user", "bob@example.com").lines == [f"bob@example.com was deleted. {STAYS}"]
    assert queries.find_person(email="bob@example.com") is None
    found = queries.find_group(group_id="/engineering/payments")
    assert found is not None
    assert found.member_count == 0


def test_another_account_may_come_in_once_the_kept_one_is_forgotten(town: FakeClock) -> None:
    def sign_in(identity: str) -> None:
        operations.record_sign_in(email="bob@example.com", identity=identity, method="test", actor=system("test"), now=town.now())

    nothing = run("forget_identity", "bob@example.com", *OLGA, "--json")
    assert (nothing.code, nothing.json["error"]["code"]) == (1, "identity_not_kept")
    sign_in("https://login.example.com#1")
    with pytest.raises(NotAllowed, match="another account"):
        sign_in("https://login.example.com#2")

    assert by_olga("forget_identity", "bob@example.com").lines == [
        "bob@example.com may sign in with another account now; the next one is kept."
    ]
    sign_in("https://login.example.com#2")
    with pytest.raises(NotAllowed, match="another account"):
        sign_in("https://login.example.com#1")
    assert audit.find_breaks("person#bob@example.com") == []


def test_the_last_admin_of_the_root_stays(town: FakeClock) -> None:
    for attempt in (
        ("revoke_role", "olga@example.com", "/"),
        ("grant_role", "olga@example.com", "/", "reader"),
        ("disable_user", "olga@example.com"),
        ("delete_user", "olga@example.com"),
    ):
        told = run(*attempt, *OLGA, "--json")
        assert (told.code, told.json["error"]["code"]) == (1, "last_root_admin"), attempt
    assert role_of("olga@example.com", "/", town) is GroupRole.ADMIN


CHANGES = (
    ("create_group", "/engineering/web", "--name", "Web"),
    ("rename_group", "/engineering", "--name", "Builders"),
    ("move_group", "/engineering/payments", "--parent", "/security"),
    ("disable_group", "/engineering"),
    ("enable_group", "/engineering"),
    ("delete_group", "/engineering/payments/ledger"),
    ("create_user", "carl@example.com", "--name", "Carl"),
    ("create_user", "carl@example.com", "--name", "Carl", "--group", "/engineering", "--role", "admin"),
    ("rename_user", "bob@example.com", "--name", "Bobby"),
    ("disable_user", "bob@example.com"),
    ("enable_user", "bob@example.com"),
    ("delete_user", "bob@example.com"),
    ("forget_identity", "bob@example.com"),
    ("grant_role", "mallory@example.com", "/engineering", "admin"),
    ("revoke_role", "bob@example.com", "/engineering/payments"),
)


@pytest.mark.parametrize("who", [BOB, MALLORY, ANA, OTTO], ids=["reader", "stranger", "auditor", "operator"])
def test_whoever_is_no_admin_changes_nothing(town: FakeClock, who: tuple[str, str]) -> None:
    before = queries.tree()
    for change in CHANGES:
        told = run(*change, *who, "--json")
        assert told.code == 1, change
        assert told.json["error"]["code"] in {"group_admins_only", "root_admins_only"}, (change, told.json)
    assert queries.tree() == before


def test_nobody_acts_whom_the_directory_does_not_know(town: FakeClock) -> None:
    for command in (*CHANGES, ("list_users",), ("list_groups",), ("show_group", "/"), ("show_user", "bob@example.com")):
        told = run(*command, "--as", "nobody@example.com", "--json")
        assert (told.code, told.json["error"]["code"]) == (1, "person_unknown"), command
        assert run(*command).problem.startswith("Error:"), command


@pytest.mark.parametrize(
    ("change", "field"),
    [
        (("create_group", "Engineering", "--name", "x"), "group_id"),
        (("create_group", "/nowhere/web", "--name", "x"), "group_id"),
        (("create_group", "/web", "--name", "x", "--parent", "/nowhere"), "parent_id"),
        (("create_group", "/web", "--name", " "), "name"),
        (("rename_group", "/security", "--name", "x", "--description", "x" * 1001), "description"),
        (("create_user", "nobody", "--name", "x"), "email"),
        (("create_user", "carl@example.com", "--name", "x\ny"), "name"),
        (("list_groups", "--under", "engineering"), None),
        (("show_group", "/nowhere"), None),
        (("show_user", "nobody@example.com"), None),
        (("grant_role", "nobody@example.com", "/security", "reader"), None),
        (("grant_role", "bob@example.com", "/nowhere", "reader"), None),
        (("revoke_role", "bob@example.com", "/security"), None),
        (("delete_user", "nobody@example.com"), None),
    ],
)
def test_bad_input_is_named(town: FakeClock, change: tuple[str, ...], field: str | None) -> None:
    told = run(*change, *OLGA, "--json")

    assert told.code == 1
    assert told.json["error"].get("field") == field
    assert run(*change, *OLGA).out == ""


def test_a_role_must_be_one_of_three(town: FakeClock) -> None:
    assert "invalid choice" in run("grant_role", "bob@example.com", "/security", "owner", *OLGA).problem


def test_what_cognito_has_not_followed_is_said(town: FakeClock, monkeypatch: pytest.MonkeyPatch) -> None:
    real = operations.set_group_state

    def behind(*, group_id: str, state: State, **rest: object) -> Changed[Group]:
        changed = real(group_id=group_id, state=state, **rest)  # type: ignore[arg-type]
        return Changed(changed.record, Mirrored(is_done=False, reason="Cognito is throttling."))

    monkeypatch.setattr(operations, "set_group_state", behind)

    told = run("disable_group", "/security", *OLGA)
    as_json = run("enable_group", "/security", *OLGA, "--json")

    assert (told.code, as_json.code) == (0, 0)
    assert told.lines == ["/security is disabled now.", "Cognito has not followed yet: Cognito is throttling. The sweep goes on with it."]
    assert as_json.json["mirror"] == {"is_done": False, "reason": "Cognito is throttling."}


def test_groups_are_listed_for_everybody(town: FakeClock) -> None:
    everything = run("list_groups", *MALLORY, "--json").json

    assert [group["group_id"] for group in everything["groups"]] == [
        "/",
        "/engineering",
        "/engineering/payments",
        "/engineering/payments/ledger",
        "/portal",
        "/portal/auditors",
        "/portal/operators",
        "/security",
    ]
    assert everything["groups"][1] == {
        "group_id": "/engineering",
        "name": "Engineering",
        "description": "",
        "state": "enabled",
        "parent_id": "/",
        "ancestors": ["/"],
        "member_count": 1,
        "child_count": 1,
    }
    some = run("list_groups", "--limit", "2", *MALLORY, "--json").json
    assert ([group["group_id"] for group in some["groups"]], some["has_more"]) == (["/", "/engineering"], True)
    assert run("list_groups", "--limit", "2", *MALLORY).lines[-1] == "There are more: --limit 0 lists all."
    assert run("list_groups", "--under", "/security", *MALLORY).lines == ["None."]
    assert len(run("list_groups", "--limit", "0", *MALLORY, "--json").json["groups"]) == 8
    assert run("list_groups", "--limit", "many", *MALLORY).code == 2


def test_members_are_shown_to_those_who_may_see_them(town: FakeClock) -> None:
    seen = {who[1]: run("show_group", "/engineering/payments", *who, "--json").json for who in (ALICE, BOB, ANA, OTTO, MALLORY)}

    for email in ("alice@example.com", "bob@example.com", "ana@example.com", "otto@example.com"):
        (member,) = seen[email]["members"]
        assert (member["email"], member["role"], member["ends_at"]) == ("bob@example.com", "reader", None)
        assert [claim["claim_id"] for claim in member["claims"]] == ["permanent"]
    assert seen["mallory@example.com"]["members"] is None
    assert [child["group_id"] for child in seen["mallory@example.com"]["children"]] == ["/engineering/payments/ledger"]
    told = run("show_group", "/engineering/payments", *MALLORY).out
    assert "bob@example.com" not in told
    assert "Only people with a role in this group, operators and auditors see who is in it." in told
    assert "bob@example.com" in run("show_group", "/engineering/payments", *BOB).out


def test_a_person_is_shown_with_reasons_to_those_who_may_see_them(town: FakeClock) -> None:
    seen = {who[1]: run("show_user", "alice@example.com", *who, "--json") for who in (ALICE, OLGA, ANA, OTTO, BOB, MALLORY)}

    assert {email: told.code for email, told in seen.items()} == {
        "alice@example.com": 0,
        "olga@example.com": 0,
        "ana@example.com": 0,
        "otto@example.com": 0,
        "bob@example.com": 1,
        "mallory@example.com": 1,
    }
    assert seen["bob@example.com"].json["error"]["code"] == "person_not_found"
    shown = seen["alice@example.com"].json
    (membership,) = shown["memberships"]
    assert (membership["group_id"], membership["role"], membership["reason"]) == ("/engineering", "admin", "")
    assert membership["claims"][0]["given_by"] == "olga@example.com"
    assert shown["inherited"][0] == {"group_id": "/engineering/payments", "role": "admin", "source_id": "/engineering"}
    assert shown["groups"] == ["/", "/engineering"]
    assert run("show_user", "alice@example.com", *ALICE).lines[-4:] == [
        "in /engineering: admin",
        "    admin, given by olga@example.com",
        "on /engineering/payments: admin, from /engineering",
        "on /engineering/payments/ledger: admin, from /engineering",
    ]
    assert run("show_user", "mallory@example.com", *MALLORY).lines[-1] == "in no group"


def test_why_a_membership_gives_nothing_is_said(town: FakeClock) -> None:
    by_olga("disable_group", "/engineering")

    assert "in /engineering: nothing now. The group is disabled." in run("show_user", "alice@example.com", *ALICE).lines


def test_people_are_listed_for_those_who_may_see_everybody(town: FakeClock) -> None:
    listed = run("list_users", "--prefix", "A", *OTTO, "--json").json

    assert [person["email"] for person in listed["people"]] == ["Alice@example.com", "ana@example.com"]
    assert set(listed["people"][0]) == {"email", "name", "state", "is_deleting", "created_at"}
    assert "Alice Park" in run("list_users", *ANA).out
    assert run("list_users", "--prefix", "zz", *OLGA).lines == ["None."]
    assert run("list_users", "--limit", "1", *OLGA).lines[-1] == "There are more: --limit 0 lists all."
    for who in (ALICE, BOB, MALLORY):
        refused = run("list_users", *who, "--json").json["error"]
        assert refused["code"] == "members_not_visible"
        assert refused["message"] == "Only people with a role on the group /, operators and auditors see everybody."


def test_people_leave_a_group_that_its_admin_put_them_into(town: FakeClock) -> None:
    ledger = "/engineering/payments/ledger"
    run("grant_role", "bob@example.com", ledger, "contributor", *ALICE)

    assert run("leave_group", ledger, *BOB).lines == [f"You have left {ledger}."]
    assert role_of("bob@example.com", ledger, town) is GroupRole.READER
    again, kept = run("leave_group", ledger, *BOB, "--json"), run("leave_group", "/engineering/payments", *BOB, "--json")
    assert (again.code, again.json["error"]["code"]) == (1, "not_in_group")
    assert (kept.code, kept.json["error"]["code"]) == (1, "kept_in_group")


def test_an_admin_is_shown_their_own_part_of_a_persons_groups(town: FakeClock) -> None:
    by_olga("grant_role", "bob@example.com", "/security", "reader")

    by_alice = run("show_user", "bob@example.com", *ALICE, "--json").json
    assert [one["group_id"] for one in by_alice["memberships"]] == ["/engineering/payments"]
    assert "/security" not in str(by_alice)
    assert not by_alice["is_whole"]
    assert "other groups are not shown" in run("show_user", "bob@example.com", *ALICE).lines[-1]
    assert "/security" in str(run("show_user", "bob@example.com", *BOB, "--json").json)


@pytest.mark.django_db
def test_it_is_said_which_rules_reach_a_group(town: FakeClock) -> None:
    assert "no rule reaches it" in run("show_group", "/security", *BOB).lines
    assert run("explain_rule", "--reaching", "/security", *BOB, "--json").json == {"group_id": "/security", "reach": []}
    rules.apply_rules(text=RULES, actor=system("setup"), now=town.now())

    told = run("explain_rule", "--reaching", "/security", *BOB)
    assert told.lines == ["rule prod-readonly: /security approves"]
    assert "rule prod-readonly: /security approves" in run("show_group", "/security", *BOB).lines
    assert run("explain_rule", "--reaching", "/nowhere", *BOB, "--json").json["error"]["code"] == "group_not_found"
