"""The workflow from a terminal: ask, decide, extend, end, show, list."""

from __future__ import annotations

import uuid

import pytest

from accessportal.access_requests.states import AccessRequest
from accessportal.rules import operations as rules
from tests.commands.conftest import Ran, run
from tests.fixtures_records import RECORD_RULES
from tests.fixtures_story import RULES, Story

DEV = ("--account", "payments-dev", "--permission-set", "PowerUserAccess", "--reason", "Incident 4711")
PROD = ("--account", "payments-prod", "--permission-set", "ReadOnlyAccess", "--reason", "Incident 4711", "--ticket", "CHG-1")
ALICE = ("--as", "alice@example.com")
BOB = ("--as", "bob@example.com")
MALLORY = ("--as", "mallory@example.com")


def ask(*arguments: str) -> Ran:
    return run("request_access", *arguments)


def test_alice_asks_and_the_request_id_comes_first(story: Story) -> None:
    told = ask(*ALICE, *DEV, "--duration", "30m")

    assert told.code == 0
    name, _, request_id = told.lines[0].partition(": ")
    assert name == "request_id"
    assert uuid.UUID(request_id)
    assert "status: ACTIVE" in told.lines
    assert "duration_seconds: 30 min" in told.lines


def test_the_json_is_one_object_with_the_request_id_first(story: Story) -> None:
    told = ask(*ALICE, *DEV, "--duration", "PT30M", "--json").json

    assert next(iter(told)) == "request_id"
    assert (told["status"], told["duration_seconds"], told["subject_id"]) == ("ACTIVE", 1800, "alice@example.com")
    assert told["title"] == "payments-dev · PowerUserAccess"
    assert told["requested_at"] == "2026-03-02T09:00:00+00:00"


def test_the_same_submission_gives_the_same_request(story: Story) -> None:
    first, again = (ask(*ALICE, *DEV, "--duration", "30m", "--submission-id", "once", "--json").json for _ in range(2))

    assert first["request_id"] == again["request_id"]


def test_mallory_is_refused_with_a_reason(story: Story) -> None:
    told = ask(*MALLORY, *DEV, "--duration", "30m")

    assert told.code == 1
    assert told.out == ""
    assert told.problem


@pytest.mark.parametrize(
    ("arguments", "code", "field"),
    [
        ((*DEV, "--duration", "soon"), 2, "--duration"),
        ((*DEV, "--duration=-5m"), 2, "--duration"),
        ((*DEV, "--duration", "99999999999d"), 2, "--duration"),
        ((*DEV, "--duration", "0s"), 2, "--duration"),
        ((*DEV, "--duration", "9h"), 1, "duration"),
        (("--account", "nowhere", *DEV[2:], "--duration", "1h"), 1, "account"),
        ((*DEV[:2], "--permission-set", "Almighty", *DEV[4:], "--duration", "1h"), 1, "permission_set"),
        ((*DEV[:4], "--reason", "  ", "--duration", "1h"), 1, "reason"),
        ((*PROD[:6], "--ticket", "nonsense", "--duration", "1h"), 1, "ticket"),
    ],
)
def test_bad_input_names_the_field_and_writes_nothing(story: Story, arguments: tuple[str, ...], code: int, field: str) -> None:
    told = ask(*ALICE, *arguments)
    as_json = ask(*ALICE, *arguments, "--json")

    assert (told.code, as_json.code) == (code, code)
    assert told.out == ""
    assert told.problem.startswith(field)
    assert as_json.json["error"]["field"].startswith(field)
    assert set(as_json.json["error"]) == {"code", "field", "message"}
    assert run("list_requests", "--json").json["requests"] == []


def test_kinds_that_share_a_flag_are_asked_for_by_it(story: Story) -> None:
    rules.apply_rules(text=RULES + RECORD_RULES, actor=story.olga, now=story.clock.now())
    shared = (*ALICE, "--scope", "tenant:acme-corp", "--reason", "Write the plan", "--json")

    approval = ask(*shared, "--kind", "approval", "--resource", "docs/plan", "--action", "GET").json
    relationship = ask(*shared, "--kind", "relationship", "--relation", "editor", "--object", "docs/plan").json

    assert (approval["title"], approval["status"]) == ("docs/plan · GET in tenant:acme-corp", "ACTIVE")
    assert relationship["target"] == {"scope": "tenant:acme-corp", "relation": "editor", "object": "docs/plan", "relation_type": "role"}
    listed = run("list_requests", "--kind", "relationship", "--json").json["requests"]
    assert [one["request_id"] for one in listed] == [relationship["request_id"]]
    missing = ask(*shared, "--kind", "approval", "--resource", "docs/plan")
    assert (missing.code, missing.json["error"]["field"]) == (2, "--action")
    foreign = ask(*shared, "--kind", "approval", "--resource", "docs/plan", "--action", "GET", "--object", "docs/plan")
    assert "it belongs to kind relationship" in foreign.json["error"]["message"]
    why = run("explain_rule", *ALICE, "--kind", "approval", "--scope", "tenant:widgets", "--resource", "docs/plan", "--action", "GET").out
    assert "read-docs does not decide: tenant:widgets is not tenant:acme-corp or tenant:acme-corp:*" in " ".join(why.split())


def test_a_stranger_to_the_directory_can_not_act(story: Story) -> None:
    told = ask("--as", "nobody@example.com", *DEV, "--duration", "30m", "--json")

    assert told.code == 1
    assert told.json["error"]["code"] == "person_unknown"
    assert told.problem.startswith("--as: nobody@example.com is not in the directory")


def test_bob_approves_from_a_terminal(story: Story) -> None:
    asked = story.ask_for_prod()

    told = run("decide", asked.request_id, "approve", *BOB, "--json")

    assert told.code == 0
    assert (told.json["status"], told.json["decided_by"]) == ("ACTIVE", "bob@example.com")


def test_bob_denies_with_a_reason(story: Story) -> None:
    asked = story.ask_for_prod()

    assert run("decide", asked.request_id, "deny", *BOB, "--reason", "Use staging").code == 0
    assert story.now_of(asked).decision_reason == "Use staging"


def test_alice_can_not_approve_her_own_request(story: Story) -> None:
    asked = story.ask_for_prod()

    told = run("decide", asked.request_id, "approve", *ALICE)

    assert told.code == 1
    assert story.now_of(asked).status == "PENDING"


def test_a_decision_that_is_too_late_says_who_was_first(story: Story) -> None:
    asked = story.ask_for_prod()
    story.approve(asked)

    told = run("decide", asked.request_id, "deny", "--as", "sam@example.com", "--reason", "No", "--json")

    assert told.code == 1
    assert "bob@example.com" in told.json["error"]["message"]


@pytest.mark.parametrize("arguments", [("decide", "some-id", "perhaps", *BOB), ("decide",), ("end_access", "some-id"), ("show_request",)])
def test_wrong_words_are_bad_usage(story: Story, arguments: tuple[str, ...]) -> None:
    told = run(*arguments)

    # Called from a terminal, argparse itself exits with 2.
    assert told.problem.startswith("Error:")


def test_alice_extends_and_ends(story: Story) -> None:
    asked = story.carry_out(story.ask())

    extended = run("extend_access", asked.request_id, *ALICE, "--duration", "2h", "--json")
    ended = run("end_access", asked.request_id, *ALICE, "--json")

    assert (extended.code, ended.code) == (0, 0)
    assert extended.json["extends"] == asked.request_id
    assert extended.json["request_id"] != asked.request_id
    assert ended.json["work"] == "REVOKE"


def test_without_a_duration_it_is_the_usual_one_of_the_rule(story: Story) -> None:
    dev = ask(*ALICE, *DEV, "--json").json
    joined = ask(*ALICE, *JOIN, "--role", "contributor", "--json").json

    assert (dev["rule_name"], dev["duration_seconds"]) == ("dev-power", 3600)
    assert (joined["rule_name"], joined["duration_seconds"]) == ("help-out", 86_400)


@pytest.mark.parametrize("duration", ["9999999d", "999999999d999999999h"])
def test_no_command_takes_an_absurd_duration(story: Story, duration: str) -> None:
    asked = story.carry_out(story.ask())

    extended = run("extend_access", asked.request_id, *ALICE, "--duration", duration)
    asked_anew = ask(*ALICE, *DEV, "--duration", duration)
    explained = run("explain_rule", *ALICE, *DEV[:4], "--duration", duration)

    for told in (extended, asked_anew, explained):
        assert told.code == 2
        assert f"“{duration}” is more: write a shorter one" in told.problem


def test_mallory_ends_and_extends_nothing(story: Story) -> None:
    asked = story.carry_out(story.ask())

    assert run("end_access", asked.request_id, *MALLORY).code == 1
    assert run("extend_access", asked.request_id, *MALLORY, "--duration", "1h").code == 1
    assert story.now_of(asked).is_granted


def test_a_request_is_shown_with_its_history(story: Story) -> None:
    asked = story.carry_out(story.ask())

    told, as_json = run("show_request", asked.request_id), run("show_request", asked.request_id, "--json").json

    assert told.lines[0] == f"request_id: {asked.request_id}"
    assert any("request.granted" in line for line in told.lines)
    assert [event["action"] for event in as_json["history"]] == ["request.auto_approved", "request.granted"]


def test_an_unknown_request_is_not_found(story: Story) -> None:
    told = run("show_request", str(uuid.uuid4()), "--json")

    assert told.code == 1
    assert told.json["error"]["code"] == "request_not_found"


def ids(told: Ran) -> list[str]:
    return [one["request_id"] for one in told.json["requests"]]


@pytest.fixture
def three(story: Story) -> tuple[AccessRequest, AccessRequest, AccessRequest]:
    return story.ask_for_prod(), story.carry_out(story.ask()), story.deny(story.ask_for_prod())


def test_lists_by_status_by_person_and_open_ones(story: Story, three: tuple[AccessRequest, AccessRequest, AccessRequest]) -> None:
    pending, active, denied = (request.request_id for request in three)

    assert ids(run("list_requests", "--json")) == [pending, active]
    assert ids(run("list_requests", "--status", "denied", "--json")) == [denied]
    assert set(ids(run("list_requests", "--subject", "Alice@Example.com", "--json"))) == {pending, active, denied}
    assert ids(run("list_requests", "--subject", "bob@example.com", "--json")) == []
    assert ids(run("list_requests", "--subject", "", "--json")) == []
    assert active in run("list_requests").out


def test_a_list_that_is_cut_says_so(story: Story, three: tuple[AccessRequest, ...]) -> None:
    told = run("list_requests", "--subject", "alice@example.com", "--limit", "2", "--json")

    assert (len(ids(told)), told.json["has_more"]) == (2, True)
    assert run("list_requests", "--subject", "alice@example.com", "--limit", "0", "--json").json["has_more"] is False
    assert run("list_requests", "--limit", "many").code == 2


def test_stuck_work_is_listed_with_its_error(story: Story) -> None:
    story.twin.settings.fail_job = 1.0
    asked = story.ask()
    for _ in range(3):
        story.carry_out(asked)
        story.clock.advance(240)

    stuck = run("list_requests", "--stuck", "--json").json["requests"]

    assert [one["request_id"] for one in stuck] == [asked.request_id]
    assert stuck[0]["work_error"]
    assert run("list_requests", "--stuck", "--status", "ACTIVE").problem.startswith("Error:")


JOIN = ("--kind", "group", "--group", "/engineering", "--reason", "Helping out")


def test_alice_asks_for_a_group(story: Story) -> None:
    told = ask(*ALICE, *JOIN, "--role", "contributor", "--duration", "2d", "--json").json

    assert (told["status"], told["kind"], told["title"]) == ("PENDING", "group", "Engineering · contributor")
    gina = run("decide", told["request_id"], "approve", "--as", "gina@example.com", "--json").json
    assert (gina["status"], gina["decided_by"]) == ("ACTIVE", "gina@example.com")
    shown = run("show_request", told["request_id"])
    assert (shown.code, "title: Engineering · contributor" in shown.lines) == (0, True)


def test_requests_are_listed_by_kind(story: Story) -> None:
    account = ask(*ALICE, *DEV, "--duration", "30m", "--json").json["request_id"]
    group = ask(*ALICE, *JOIN, "--role", "reader", "--duration", "1h", "--json").json["request_id"]

    for kind, expected in {"aws_account": [account], "group": [group]}.items():
        assert [one["request_id"] for one in run("list_requests", "--kind", kind, "--json").json["requests"]] == expected


@pytest.mark.parametrize(
    ("arguments", "flag", "says"),
    [
        (("--kind", "group", "--role", "reader"), "--group", "kind group needs --group and --role"),
        (("--account", "payments-dev"), "--permission-set", "kind aws_account needs --account and --permission-set"),
        (("--kind", "group", "--group", "/engineering", "--role", "reader", "--account", "a"), "--account", "belongs to kind aws_account"),
        (("--group", "/engineering", "--role", "reader"), "--group", "Give --kind group"),
    ],
)
def test_flags_of_the_wrong_kind_are_bad_usage(story: Story, arguments: tuple[str, ...], flag: str, says: str) -> None:
    told = ask(*ALICE, *arguments, "--duration", "1h", "--reason", "Helping out")

    assert told.code == 2
    assert told.problem.startswith(f"{flag}: ")
    assert says in told.problem


def test_the_explainer_answers_for_groups(story: Story) -> None:
    told = run("explain_rule", *ALICE, "--kind", "group", "--group", "/engineering", "--role", "contributor", "--duration", "1h")

    assert told.code == 0
    assert told.lines[0].startswith("Allowed after approval: Rule help-out admits it")
    assert "approvals needed: 1, by gina@example.com, olga@example.com" in told.lines
    assert "look-around does not decide: contributor is not reader" in told.lines
