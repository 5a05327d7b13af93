"""Approvals, relationships and their scopes from a terminal."""

from __future__ import annotations

from datetime import timedelta

import pytest

from accessportal.audit.models import AuditItem
from accessportal.authz.models import ApprovalItem, RelationshipItem, ScopeItem
from tests.commands.conftest import Ran, run
from tests.fixtures_story import Story

OLGA, ANA = ("--as", "olga@example.com"), ("--as", "ana@example.com")
ACME = ("--scope", "tenant:acme")
ALICE = ("alice", "doc", "GET")


@pytest.fixture
def at(story: Story, monkeypatch: pytest.MonkeyPatch) -> Story:
    """Commands ask the story's clock."""
    monkeypatch.setattr("accessportal.commands.base.SystemClock", lambda: story.clock)
    return story


def done(name: str, *arguments: str) -> Ran:
    told = run(name, *arguments)
    assert told.code == 0, told.problem
    return told


def test_what_is_granted_is_found_until_its_end(at: Story) -> None:
    made = done("grant_approval", *ALICE, *ACME, "--ttl", "1h", "--metadata", "ticket=T-1", *OLGA, "--json").json
    assert (made["key"], made["metadata"], made["warnings"]) == ("approvals:tenant:acme:alice:doc:GET", {"ticket": "T-1"}, [])

    assert done("check_approval", *ALICE, *ACME, *ANA).lines[0].startswith("yes until ")
    assert run("check_approval", *ALICE, "--scope", "tenant:other", *ANA).code == 1
    for narrowed in ((), ("--wide",), ("--identity", "alice"), ("--resource", "doc", "--action", "GET")):
        assert [one["identity"] for one in done("list_approvals", *ACME, *narrowed, *ANA, "--json").json["records"]] == ["alice"]
        assert done("list_approvals", *ACME, *narrowed, "--count", *ANA).lines == ["1"]
    assert "alice" in done("list_approvals", "--ending", "2h", *ANA).out
    again = run("grant_approval", *ALICE, *ACME, *OLGA, "--json")
    assert (again.code, again.json["error"]["code"]) == (1, "exists")
    done("grant_approval", *ALICE, *ACME, "--ttl", "30m", "--if-exists", "replace", *OLGA)
    at.clock.advance(1_800)
    told = run("check_approval", *ALICE, *ACME, *ANA)
    assert (told.code, told.lines, told.problem) == (1, ["no"], "Nothing that counts now says so.")
    assert done("list_approvals", *ACME, *ANA).lines == ["None."]
    assert done("sweep_authz", "--json").json["removed"] == 1


def test_relationships_and_their_chains(at: Story) -> None:
    for one, other in (("leaf", "middle"), ("middle", "root")):
        done("add_relationship", one, "trusts", other, *ACME, "--type", "trust", "--ttl", "1h", *OLGA)
    asked = ("leaf", "trusts", "root", *ACME, *ANA)

    assert run("check_relationship", *asked).code == 1
    assert [one["object"] for one in done("check_relationship", *asked, "--chain", "--json").json["by"]] == ["middle", "root"]
    assert run("check_relationship", *asked, "--depth", "1", "--json").json["why"] == "too_deep"
    assert [one["subject"] for one in done("list_relationships", *ACME, "--object", "root", *ANA, "--json").json["records"]] == ["middle"]
    done("remove_relationship", "middle", "trusts", "root", *ACME, *OLGA)
    assert run("check_relationship", *asked, "--chain").code == 1


def test_policies_are_set_by_preset_and_limit(at: Story) -> None:
    told = done("set_ttl_policy", "tenant:acme", "--preset", "temporary", "--max", "2h", *OLGA, "--json").json
    assert (told["policy_of"], told["default_seconds"], told["max_seconds"]) == ("tenant:acme", 3_600, 7_200)

    refused = run("grant_approval", *ALICE, "--scope", "tenant:acme:env:prod", "--ttl", "3h", *OLGA)
    assert refused.code == 1
    assert "the policy of tenant:acme" in refused.problem
    assert done("set_ttl_policy", "tenant:acme", "--inherit", *OLGA, "--json").json["policy_of"] is None
    assert run("set_ttl_policy", "tenant:acme", *OLGA).code == 2


def test_a_scope_is_deleted_when_its_name_is_typed(at: Story, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("accessportal.commands.authz.time.sleep", lambda seconds: at.clock.advance(6 * seconds))
    done("grant_approval", *ALICE, *ACME, "--ttl", "1h", *OLGA)

    assert run("delete_scope", "tenant:acme", *OLGA).code == 2
    assert run("delete_scope", "tenant:acme", "--name", "acme", *OLGA).code == 1
    told = done("delete_scope", "tenant:acme", "--name", "tenant:acme", "--wait", *OLGA)
    assert "tenant:acme: 1 approvals and 0 relationships count now." in told.out
    assert {"state: deleted", "removed: 1"} <= set(told.lines)


def test_waiting_for_a_deletion_ends_with_what_can_not_be_removed(at: Story, monkeypatch: pytest.MonkeyPatch) -> None:
    done("grant_approval", *ALICE, *ACME, "--ttl", "1h", *OLGA)
    ApprovalItem("tenant:acme#alice", "doc#GET").update(actions=[ApprovalItem.identity.set("mallory")])
    monkeypatch.setattr("accessportal.commands.authz.time.sleep", lambda _: pytest.fail("waits for ever"))

    told = run("delete_scope", "tenant:acme", "--name", "tenant:acme", "--wait", *OLGA)
    assert (told.code, told.problem) == (1, "1 record can't be removed; the worker tries again.")
    assert "tenant:acme#alice, doc#GET" in told.out


def test_records_are_brought_into_a_scope(at: Story) -> None:
    for name in ("alice", "bob"):
        done("grant_approval", name, "doc", "GET", "--scope", "global", "--ttl", "1h", *OLGA)
    done("grant_approval", "bob", "doc", "GET", *ACME, "--ttl", "1h", *OLGA)
    move = ("--from", "global", "--to", "tenant:acme", *OLGA, "--json")

    plan = run("scope_records", *move, "--dry-run")
    assert (plan.code, plan.json["moved"], plan.json["is_applied"]) == (1, 1, False)
    assert done("list_approvals", "--scope", "global", "--count", *ANA).lines == ["2"]
    told = run("scope_records", *move)
    assert (told.json["moved"], [one["item"] for one in told.json["failures"]]) == (1, ["approval#global#bob#doc#GET"])
    # Again: what went is there, what can't go stays.
    assert run("scope_records", *move).json["moved"] == 0
    assert done("check_approval", *ALICE, *ACME, *ANA, "--json").json["until"] == (at.clock.now() + timedelta(hours=1)).isoformat()
    assert done("list_approvals", "--scope", "global", "--count", *ANA).lines == ["1"]


@pytest.mark.parametrize("tampered", ["approval", "relationship", "authz_scope", "its last event", "its names"])
def test_what_was_tampered_with_is_found(at: Story, tampered: str) -> None:
    entity = "approval#tenant:acme#alice#doc#GET"
    done("grant_approval", *ALICE, *ACME, "--ttl", "1h", *OLGA)
    done("add_relationship", "leaf", "trusts", "middle", *ACME, "--type", "trust", "--ttl", "1h", *OLGA)
    done("grant_approval", *ALICE, *ACME, "--ttl", "2h", "--if-exists", "extend", *OLGA)
    at.clock.advance(7_200)
    assert done("verify_audit", "--json").json["breaks"] == []

    match tampered:
        case "approval":
            ApprovalItem("tenant:acme#alice", "doc#GET").update(actions=[ApprovalItem.audit_head.set("0" * 64)])
        case "relationship":
            entity = "relationship#tenant:acme#leaf#trusts#middle"
            RelationshipItem("tenant:acme#leaf", "trusts#middle").update(actions=[RelationshipItem.audit_head.set("0" * 64)])
        case "authz_scope":
            entity = "scope#tenant:acme"
            ScopeItem("tenant:acme").update(actions=[ScopeItem.audit_head.set("0" * 64)])
        case "its last event":
            AuditItem(entity, 2).delete()
        case _:
            entity = "tenant:acme#alice, doc#GET"
            ApprovalItem("tenant:acme#alice", "doc#GET").update(actions=[ApprovalItem.identity.set("mallory")])

    told = run("verify_audit", "--json")
    assert (told.code, [one["entity"] for one in told.json["breaks"]]) == (1, [entity])


def test_strangers_learn_nothing(at: Story) -> None:
    for name, arguments in (("check_approval", (*ALICE, *ACME)), ("list_approvals", ACME), ("grant_approval", (*ALICE, *ACME))):
        assert run(name, *arguments, "--as", "mallory@example.com").code == 1
    assert run("grant_approval", *ALICE, *ACME, *ANA).code == 1
    assert run("check_approval", *ALICE, "--scope", "acme", *ANA).code == 2
