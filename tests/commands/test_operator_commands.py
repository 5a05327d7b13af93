"""Running the portal from a terminal: tables, rules, ticks, the catalog, the audit log."""

from __future__ import annotations

import io
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import boto3
import pytest
from django.core.management import CommandError, call_command, get_commands, load_command_class
from pydantic import SecretStr

from accessportal.access_requests import operations
from accessportal.access_requests.states import TickReport
from accessportal.apps import check_audit_keys
from accessportal.audit import queries as audit_queries
from accessportal.audit.models import AuditItem
from accessportal.audit.operations import read_keys
from accessportal.audit.states import AuditEvent
from accessportal.commands.base import joined
from accessportal.conf import ROOT, Conf
from accessportal.directory import operations as directory
from accessportal.directory.states import State
from accessportal.kernel.actors import system
from accessportal.rules import queries as rules
from accessportal.store.base import StoreSettings, configure, registered_models
from tests.commands.conftest import run
from tests.fixtures_story import RULES, Story
from tests.fixtures_twin import REGION, plain_twin, refuse, when

COMMANDS = sorted(name for name, app in get_commands().items() if app == "accessportal.commands")


@pytest.mark.parametrize("name", COMMANDS)
def test_help_ends_with_an_example_of_the_command(name: str) -> None:
    told = load_command_class("accessportal.commands", name).create_parser("manage.py", name).format_help()

    last = told.rstrip().splitlines()[-1]
    assert last.strip().startswith(f"python manage.py {name}")
    assert "--json" in told


@pytest.fixture
def empty_cloud() -> Iterator[None]:
    with plain_twin():
        configure(StoreSettings(table_prefix="fresh-", region="eu-central-1"))
        yield


def test_tables_are_made_once(empty_cloud: None) -> None:
    first, again = run("create_tables", "--json"), run("create_tables", "--json")

    assert len(first.json["tables"]) == len(registered_models())
    assert {table["created"] for table in first.json["tables"]} == {True}
    assert {table["created"] for table in again.json["tables"]} == {False}
    assert "fresh-ActiveRequests: exists" in run("create_tables").out


def test_a_table_of_somebody_else_is_left_alone(empty_cloud: None) -> None:
    client = AuditItem._get_connection().connection.client
    client.create_table(  # type: ignore[attr-defined]
        TableName="fresh-ActiveRequests",
        BillingMode="PAY_PER_REQUEST",
        KeySchema=[{"AttributeName": "id", "KeyType": "HASH"}],
        AttributeDefinitions=[{"AttributeName": "id", "AttributeType": "S"}],
    )

    told = run("create_tables", "--json")

    assert told.code == 1
    assert told.json["error"]["code"] == "table_has_other_keys"
    assert "PORTAL_TABLE_PREFIX" in told.problem


def test_an_index_that_is_new_is_added(empty_cloud: None) -> None:
    AuditItem.create_table(billing_mode="PAY_PER_REQUEST")
    client = AuditItem._get_connection().connection.client
    update = {"TableName": "fresh-AuditLog", "GlobalSecondaryIndexUpdates": [{"Delete": {"IndexName": "ActorIndex"}}]}
    client.update_table(**update)  # type: ignore[attr-defined]

    tables = {table["table"]: table for table in run("create_tables", "--json").json["tables"]}

    assert tables["fresh-AuditLog"]["added_indexes"] == ["ActorIndex"]


def test_items_that_say_when_they_are_to_be_purged_are(empty_cloud: None) -> None:
    """Wherever an item says so, DynamoDB is told to look at it."""
    run("create_tables")
    client: Any = AuditItem._get_connection().connection.client

    saying = {model for model in registered_models() if "purge_at" in model.get_attributes()}
    assert {"ActiveRequests", "Comparisons"} <= {model.base_table_name for model in saying}
    for model in registered_models():
        told = client.describe_time_to_live(TableName=f"fresh-{model.base_table_name}")["TimeToLiveDescription"]
        wanted = {"TimeToLiveStatus": "ENABLED", "AttributeName": "purge_at"} if model in saying else {"TimeToLiveStatus": "DISABLED"}
        assert told == wanted, model


def test_a_plan_changes_nothing_and_loading_does(story: Story, tmp_path: Path) -> None:
    file = tmp_path / "rules.yaml"
    file.write_text(RULES.replace("max: 4h", "max: 2h"))

    plan = run("load_rules", str(file), "--dry-run", "--json").json
    assert (plan["changed"], plan["applied"]) == (["dev-power", "prod-power", "stand-in-operators"], False)
    assert run("load_rules", str(file), "--dry-run", "--json").json == plan

    told = run("load_rules", str(file))
    assert "changed: dev-power" in told.lines
    assert told.lines[-1] == "These rules are in force now."
    assert run("load_rules", str(file)).lines[-1] == "Nothing to change: these rules are in force already."


def test_a_wrong_file_is_refused_with_its_line(story: Story, tmp_path: Path) -> None:
    file = tmp_path / "rules.yaml"
    file.write_text(RULES.replace("quorum: 2", "quorum: many"))

    told = run("load_rules", str(file), "--json")

    assert told.code == 1
    assert told.json["error"]["code"] == "rules_invalid"
    assert "line " in told.problem
    assert run("load_rules", str(tmp_path / "missing.yaml")).code == 2


def test_the_history_names_the_operator_who_loaded_the_rules(story: Story, tmp_path: Path) -> None:
    file = tmp_path / "rules.yaml"
    file.write_text(RULES.replace("max: 8h", "max: 6h"))

    assert run("load_rules", str(file), "--as", "alice@example.com").code == 1
    assert rules.find_rule(name="prod-readonly").max_duration_seconds == 8 * 3600  # type: ignore[union-attr]
    assert run("load_rules", str(file), "--as", "olga@example.com").code == 0

    changed = rules.find_rule(name="prod-readonly")
    assert changed is not None
    assert (changed.max_duration_seconds, changed.applied_by) == (6 * 3600, "olga@example.com")


def test_a_rule_is_explained(story: Story) -> None:
    arguments = ("--as", "alice@example.com", "--account", "payments-prod", "--permission-set", "ReadOnlyAccess")

    told, as_json = run("explain_rule", *arguments), run("explain_rule", *arguments, "--json").json

    assert told.lines[0].startswith("Allowed after approval: ")
    assert "rule: prod-readonly" in told.lines
    assert as_json["allowed"] is True
    assert {person["email"] for person in as_json["approvers"]["people"]} == {"bob@example.com", "sam@example.com"}


def test_why_not_is_explained_too(story: Story) -> None:
    arguments = ("--as", "mallory@example.com", "--account", "payments-prod", "--permission-set", "ReadOnlyAccess")

    told = run("explain_rule", *arguments)

    assert told.code == 0
    assert told.lines[0].startswith("Not possible: ")
    assert any(line.startswith("prod-readonly does not decide: ") for line in told.lines)
    assert run("explain_rule", *arguments[:2], "--account", "nowhere", *arguments[4:]).code == 1
    assert run("explain_rule", *arguments, "--duration", "soon").code == 2


@pytest.fixture
def on_story_clock(story: Story, monkeypatch: pytest.MonkeyPatch) -> Story:
    monkeypatch.setattr("accessportal.commands.base.SystemClock", lambda: story.clock)
    return story


def test_a_tick_does_what_is_due(on_story_clock: Story) -> None:
    story = on_story_clock
    asked = story.ask()

    told = run("tick", "--look-ahead", "0", "--json")

    assert (told.code, told.json["granted"], told.json["failures"]) == (0, 1, [])
    assert story.now_of(asked).is_granted
    assert run("tick", "--look-ahead", "soon").code == 2


def test_a_tick_by_hand_looks_ahead_as_far_as_the_sweep(on_story_clock: Story, monkeypatch: pytest.MonkeyPatch) -> None:
    looked: list[float] = []

    def tick(*, clock: object, lookahead_seconds: float) -> TickReport:
        looked.append(lookahead_seconds)
        return TickReport(lapsed=0, expired=0, granted=0, revoked=0, departed=0, waiting=0, failures=())

    monkeypatch.setattr(operations, "tick", tick)
    run("tick")

    assert looked == [operations.LOOKAHEAD_SECONDS]


def test_requests_are_compared_with_the_directory(on_story_clock: Story) -> None:
    story = on_story_clock
    held = story.carry_out(story.ask())
    directory.set_person_state(email=held.subject_id, state=State.DISABLED, actor=system("setup"), now=story.clock.now())

    told = run("compare_subjects", "--json")

    assert (told.code, told.json["checked"], told.json["ended"], told.json["stopped"]) == (0, 1, 1, "")
    assert run("compare_subjects", "--most-share", "2").code == 1


def test_a_tick_with_a_failing_item_fails_at_its_end(on_story_clock: Story, monkeypatch: pytest.MonkeyPatch) -> None:
    story = on_story_clock
    poisoned, other = story.ask(), story.ask(permission_set="ReadOnlyAccess")
    real = story.carry_out

    def carry_out(*, request_id: str, clock: object) -> object:
        if request_id == poisoned.request_id:
            raise ValueError("poisoned")
        return real(story.now_of(other))

    monkeypatch.setattr("accessportal.access_requests.operations.sweeping.carry_out", carry_out)
    told = run("tick", "--look-ahead", "0", "--json")

    assert told.code == 1
    assert [failure["item"] for failure in told.json["failures"]] == [poisoned.request_id]
    assert story.now_of(other).is_granted


def test_the_catalog_is_read_anew_and_listed(on_story_clock: Story) -> None:
    assert run("sync_catalog", "--json").json["accounts"] == 4

    told = run("list_accounts", "--search", "payments", "--json")

    assert {account["name"] for account in told.json["accounts"]} == {"payments-dev", "payments-prod"}
    assert "/Workloads/Prod/Payments" in run("list_accounts").out


def test_a_catalog_that_can_not_be_read_is_an_error(on_story_clock: Story, monkeypatch: pytest.MonkeyPatch) -> None:
    on_story_clock.twin.settings.server_error = 1.0

    told = run("sync_catalog", "--json")

    assert told.code == 1
    assert told.json["error"]["code"] == "catalog_sync_failed"


def test_what_is_missing_is_reported_and_made_again_when_told(on_story_clock: Story) -> None:
    story = on_story_clock
    story.carry_out(story.ask())
    story.twin.sso.delete_account_assignment(**story.twin.key("alice@example.com", "payments-dev", "PowerUserAccess"))
    story.clock.advance(60)

    reported = run("reconcile_assignments", "--json")
    assert (reported.code, len(reported.json["missing"]), reported.json["mended"]) == (0, 1, 0)
    assert not story.is_assigned()

    applied = run("reconcile_assignments", "--apply", "--json")
    assert (applied.code, applied.json["mended"]) == (0, 1)
    assert story.is_assigned()


def test_one_finding_alone_is_mended(on_story_clock: Story) -> None:
    story = on_story_clock
    for name in ("PowerUserAccess", "ReadOnlyAccess"):
        story.twin.sso.create_account_assignment(**story.twin.key("mallory@example.com", "payments-dev", name))
        story.clock.advance(3)
    told = run("reconcile_assignments")
    ids = [line.split()[0] for line in told.out.splitlines() if "unknown:" in line]
    assert (len(ids), "unknown 2" in told.out) == (2, True)

    assert run("reconcile_assignments", "--finding", ids[0]).code == 2
    assert "found no 000000000000" in run("reconcile_assignments", "--remove-unknown", "--finding", "000000000000").problem
    chosen = run("reconcile_assignments", "--remove-unknown", "--finding", ids[0], "--json")

    assert (chosen.code, chosen.json["mended"], len(story.twin.assignments())) == (0, 1, 1)
    assert run("reconcile_assignments", "--json").json["unknown"][0]["finding_id"] == ids[1]


def test_a_list_that_can_not_be_read_is_named_and_fails_the_command(on_story_clock: Story) -> None:
    story = on_story_clock
    story.carry_out(story.ask())

    with when("ListAccountAssignments", refuse("AccessDeniedException")):
        told = run("reconcile_assignments", "--json")

    assert (told.code, [one["account_id"] for one in told.json["unread"]]) == (1, [story.twin.accounts["payments-dev"]])
    assert story.twin.accounts["payments-dev"] in told.problem


@pytest.mark.parametrize("arguments", [("--most-share", "half"), ("--most-share", "2"), ("--adopt-unknown", "--remove-unknown")])
def test_a_share_is_a_share(story: Story, arguments: tuple[str, ...]) -> None:
    assert run("reconcile_assignments", *arguments).problem.startswith("Error:")


def test_whole_chains_verify(story: Story) -> None:
    story.carry_out(story.ask())
    story.deny(story.ask_for_prod())

    told = run("verify_audit", "--json")

    assert (told.code, told.json["breaks"]) == (0, [])
    # Two requests, one assignment, seven groups, seven people, seven rules and their set.
    assert told.json["chains"] == 25


def test_a_changed_event_is_reported_with_entity_and_sequence(story: Story) -> None:
    asked = story.deny(story.ask_for_prod())
    AuditItem(asked.entity, 1).update(actions=[AuditItem.actor.set("mallory@example.com")])

    told = run("verify_audit", "--json")

    assert told.code == 1
    assert {(one["entity"], one["sequence"]) for one in told.json["breaks"]} == {(asked.entity, 1)}
    assert f"{asked.entity}, event 1" in run("verify_audit").out


def test_a_tail_that_was_cut_off_is_a_break_too(story: Story) -> None:
    asked = story.deny(story.ask_for_prod())
    AuditItem(asked.entity, 2).delete()

    assert {one["sequence"] for one in run("verify_audit", "--json").json["breaks"]} == {2}


@pytest.mark.parametrize(
    "forged",
    [
        {"data": {"S": "nothing"}},
        {"at": {"S": "never"}},
        {"actor": {"N": "1"}},
        {"hash": {"S": "0" * 64}},
        {"day#shard": {"S": "2020-01-01#0"}},
    ],
    ids=lambda forged: next(iter(forged)),
)
def test_an_event_forged_in_whatever_way_is_reported_with_its_place(story: Story, forged: dict[str, Any]) -> None:
    asked = story.deny(story.ask_for_prod())
    key = {"entity": {"S": asked.entity}, "sequence": {"N": "1"}}
    boto3.client("dynamodb", region_name=REGION).update_item(
        TableName="AuditLog",
        Key=key,
        UpdateExpression="SET #name = :value",
        ExpressionAttributeNames={"#name": next(iter(forged))},
        ExpressionAttributeValues={":value": next(iter(forged.values()))},
    )

    told = run("verify_audit", "--json")

    assert told.code == 1
    assert (asked.entity, 1) in {(one["entity"], one["sequence"]) for one in told.json["breaks"]}


def test_chains_of_what_is_gone_are_walked_too(story: Story) -> None:
    for step in (directory.create_group, directory.delete_group):
        named = {"name": "Guild", "description": ""} if step is directory.create_group else {}
        step(group_id="/guild", **named, actor=system("test"), now=story.clock.now())
    story.clock.advance(60)
    whole = run("verify_audit", "--json")
    assert (whole.code, whole.json["gone"]) == (0, 1)

    AuditItem("group#/guild", 1).update(actions=[AuditItem.actor.set("mallory@example.com")])
    assert [one["sequence"] for one in run("verify_audit", "--json").json["breaks"]] == [1]


def test_a_person_taken_out_behind_the_portal_is_a_break(story: Story) -> None:
    boto3.client("dynamodb", region_name=REGION).delete_item(
        TableName="AccessManagement", Key={"pk": {"S": "U:alice@example.com"}, "sk": {"S": "U:alice@example.com"}}
    )
    story.clock.advance(60)

    (one,) = run("verify_audit", "--json").json["breaks"]

    # What she was in is left, and of the chain nothing tells that she went.
    assert (one["entity"], one["problem"]) == (
        "person#alice@example.com",
        "the item is at version 0 but the chain ends at 2 or with another hash",
    )


def test_a_rule_reworded_behind_its_hash_is_reported_with_the_other_breaks(story: Story, monkeypatch: pytest.MonkeyPatch) -> None:
    asked = story.deny(story.ask_for_prod())
    AuditItem(asked.entity, 2).delete()
    boto3.client("dynamodb", region_name=REGION).update_item(
        TableName="AccessRules",
        Key={"rule_name": {"S": "prod-readonly"}, "version": {"N": "1"}},
        UpdateExpression="SET approval.required = :no",
        ExpressionAttributeValues={":no": {"BOOL": False}},
    )
    monkeypatch.setattr("accessportal.rules.store._cached", None)

    told = run("verify_audit", "--json")

    assert {one["entity"] for one in told.json["breaks"]} == {asked.entity, "rule#prod-readonly", "ruleset#current"}
    assert "prod-readonly" in told.json["breaks"][-1]["problem"]


def test_a_negative_number_belongs_to_the_flag_before_it() -> None:
    given = ["manage.py", "extend_access", "id", "--duration", "-1h", "--as", "a@example.com", "-v", "2"]
    assert joined(given) == ["manage.py", "extend_access", "id", "--duration=-1h", "--as", "a@example.com", "-v", "2"]


def test_a_setting_that_can_not_be_used_is_named_without_its_value() -> None:
    environment = os.environ | {"PORTAL_DATABASE_URL": "portal:secret-word@host", "DJANGO_SETTINGS_MODULE": "accessportal.settings"}

    told = subprocess.run([sys.executable, "manage.py", "tick"], cwd=ROOT, env=environment, capture_output=True, text=True, check=False)

    assert told.returncode == 1
    assert "PORTAL_DATABASE_URL must be" in told.stderr
    assert "secret-word" not in told.stderr
    assert "Traceback" not in told.stderr


@pytest.mark.parametrize("workers", ["1", "3"])
def test_the_log_is_read_whole_and_once_whoever_helps(story: Story, workers: str, monkeypatch: pytest.MonkeyPatch) -> None:
    asked = story.deny(story.ask_for_prod())
    AuditItem(asked.entity, 1).update(actions=[AuditItem.actor.set("mallory@example.com")])
    monkeypatch.setattr("accessportal.commands.audit._TOLD_EVERY", 10)

    told = run("verify_audit", "--workers", workers, "--json")

    assert (told.json["chains"], {one["entity"] for one in told.json["breaks"]}) == (23, {asked.entity})
    with pytest.raises(CommandError):
        call_command("verify_audit", "--workers", workers, stdout=io.StringIO(), stderr=(progress := io.StringIO()))
    assert progress.getvalue().splitlines() == ["10 chains walked", "20 chains walked"]
    assert run("verify_audit", "--workers", "0").code == 2


def test_a_chain_of_which_nothing_is_left_is_a_break(story: Story) -> None:
    asked = story.ask_for_prod()
    AuditItem(asked.entity, 1).delete()

    assert [one["entity"] for one in run("verify_audit", "--json").json["breaks"]] == [asked.entity]


def test_what_is_written_while_the_log_is_walked_is_no_break(story: Story, monkeypatch: pytest.MonkeyPatch) -> None:
    asked = story.ask_for_prod()
    walk = audit_queries.every_chain

    def meanwhile(**given: int) -> Iterator[tuple[str, list[AuditEvent]]]:
        story.deny(asked)
        yield from walk(**given)

    monkeypatch.setattr(audit_queries, "every_chain", meanwhile)

    assert run("verify_audit", "--workers", "1", "--json").json["breaks"] == []


def test_what_goes_while_the_log_is_walked_is_no_break(story: Story, monkeypatch: pytest.MonkeyPatch) -> None:
    walk = audit_queries.every_chain

    def meanwhile(**given: int) -> Iterator[tuple[str, list[AuditEvent]]]:
        directory.delete_person(email="mallory@example.com", actor=story.olga, now=story.clock.now())
        yield from walk(**given)

    monkeypatch.setattr(audit_queries, "every_chain", meanwhile)

    assert run("verify_audit", "--workers", "1", "--json").json["breaks"] == []


def test_a_key_for_the_audit_log_is_made_as_the_setting_has_it() -> None:
    first, second = (run("rotate_audit_key", "--json").json for _ in range(2))

    assert list(read_keys(first["key"])) == [first["key_id"]]
    assert first["key"] != second["key"]
    assert any("PORTAL_AUDIT_PLAIN_UNTIL=20" in step for step in first["steps"])


@pytest.mark.parametrize(("keys", "warnings"), [("", ["accessportal.W001"]), (f"k:{'A' * 43}=", [])])
def test_a_deployment_without_keys_of_the_audit_log_is_warned(keys: str, warnings: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("accessportal.apps.conf", lambda: Conf(audit_keys=SecretStr(keys)))

    assert [one.id for one in check_audit_keys(None)] == warnings
    unlocked = Conf(audit_keys=SecretStr(keys), evidence_bucket="evidence", evidence_key=SecretStr("A" * 43 + "="))
    monkeypatch.setattr("accessportal.apps.conf", lambda: unlocked)
    assert [one.id for one in check_audit_keys(None)] == ["accessportal.W002", *warnings]
