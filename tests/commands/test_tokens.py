"""API tokens from a terminal."""

from __future__ import annotations

from datetime import datetime, timedelta

import pytest

from accessportal.tokens import operations, queries
from accessportal.tokens.models import TokenItem
from accessportal.tokens.states import TokenRefused
from tests.commands.conftest import run
from tests.fixtures_story import Story

OLGA = ("--as", "olga@example.com")


def test_a_token_is_created_listed_and_revoked(story: Story) -> None:
    made = run("create_token", "Lab runner", "--scope", "track", "--rate", "30", "--days", "2", *OLGA, "--json").json
    assert (made["name"], made["scope"], made["rate_per_minute"], made["state"]) == ("Lab runner", "track", 30, "live")
    assert datetime.fromisoformat(made["expires_at"]) - datetime.fromisoformat(made["created_at"]) == timedelta(days=2)
    assert operations.authenticate(text=made["token"], now=story.clock.now()).token_id == made["token_id"]

    listed = run("list_tokens", *OLGA)
    assert made["token_id"] in listed.out
    assert made["token"] not in listed.out
    assert f"{story.clock.now():%Y-%m-%d %H:%M:%SZ}" in listed.out

    revoked = run("revoke_token", made["token_id"], "--reason", "The lab has closed", *OLGA, "--json").json
    assert (revoked["state"], revoked["revoked_by"]) == ("revoked", "olga@example.com")
    story.clock.advance(60)
    assert run("revoke_token", made["token_id"], *OLGA, "--json").json == revoked
    with pytest.raises(TokenRefused):
        operations.authenticate(text=made["token"], now=story.clock.now())

    assert run("list_tokens", *OLGA).lines == ["None."]
    assert [one["token_id"] for one in run("list_tokens", "--all", *OLGA, "--json").json["tokens"]] == [made["token_id"]]
    assert run("verify_audit").code == 0


def test_a_person_reads_the_token_once(story: Story) -> None:
    made = run("create_token", "Lab runner", "--scope", "admin", "--no-end", *OLGA)
    assert made.lines[0].startswith("token: apt_")
    assert made.lines[-1] == "Keep the token now: it is not shown again."
    assert "no end" in run("list_tokens", *OLGA).out


def test_a_token_ends_unless_told_otherwise_and_may_be_bound(story: Story) -> None:
    bound = ("--track", "lab-*", "--track", "track-1", "--most-held", "5")
    made = run("create_token", "Lab runner", "--scope", "track", *bound, *OLGA, "--json").json
    assert datetime.fromisoformat(made["expires_at"]) - datetime.fromisoformat(made["created_at"]) == timedelta(days=90)
    assert (made["tracks"], made["most_held"]) == (["lab-*", "track-1"], 5)
    assert [one["token_id"] for one in run("list_tokens", "--by", "Olga@example.com", *OLGA, "--json").json["tokens"]] == [made["token_id"]]
    assert run("list_tokens", "--by", "ana@example.com", *OLGA).lines == ["None."]


def test_a_token_for_checks_has_a_home_that_lists_and_events_show(story: Story) -> None:
    made = run("create_token", "Gateway", "--scope", "authz:check", "--home-scope", "tenant:acme", *OLGA, "--json").json
    assert (made["scope"], made["home_scope"]) == ("authz:check", "tenant:acme")
    assert "authz:check in tenant:acme" in run("list_tokens", *OLGA).out
    assert "with scope authz:check within tenant:acme." in queries.explain(token_id=made["token_id"], now=story.clock.now())
    (event,) = queries.history(token_id=made["token_id"]).items
    assert event.data["home_scope"] == "tenant:acme"


@pytest.mark.parametrize(("email", "may", "sees"), [("olga", True, True), ("ana", False, True), ("mallory", False, False)])
def test_who_may(story: Story, email: str, may: bool, sees: bool) -> None:
    token_id = run("create_token", "Lab runner", "--scope", "track", *OLGA, "--json").json["token_id"]
    who = ("--as", f"{email}@example.com")

    assert (run("list_tokens", *who).code == 0) is sees
    assert (run("create_token", "Another", "--scope", "track", *who).code == 0) is may
    assert (run("revoke_token", token_id, *who).code == 0) is may


@pytest.mark.parametrize(
    ("arguments", "code", "field"),
    [
        (("--rate", "0"), 1, "rate_per_minute"),
        (("--rate", "many"), 2, "--rate"),
        (("--days", "0"), 2, "--days"),
        (("--days", "9999"), 2, "--days"),
        (("--most-held", "0"), 1, "most_held"),
        (("--track", "*"), 1, "tracks"),
        (("--home-scope", "tenant:acme"), 1, "home_scope"),
        (("--scope", "authz:check"), 1, "home_scope"),
        (("--scope", "authz:write", "--home-scope", "tenant:"), 1, "home_scope"),
        (("--scope", "authz:write", "--home-scope", "acme"), 1, "home_scope"),
        (("--scope", "authz:write", "--home-scope", "tenant:acme", "--track", "lab-1"), 1, "tracks"),
        (("--scope", "authz:write", "--home-scope", "tenant:acme", "--most-held", "5"), 1, "most_held"),
    ],
    ids=str,
)
def test_what_can_not_be(story: Story, arguments: tuple[str, ...], code: int, field: str) -> None:
    refused = run("create_token", "Lab runner", "--scope", "track", *arguments, *OLGA, "--json")
    assert (refused.code, refused.json["error"]["field"]) == (code, field)
    assert run("list_tokens", "--all", *OLGA).lines == ["None."]


def test_an_unknown_token_is_told(story: Story) -> None:
    assert run("revoke_token", "a" * 12, *OLGA, "--json").json["error"]["code"] == "token_not_found"


def test_a_token_that_was_tampered_with_is_found(story: Story) -> None:
    made = run("create_token", "Lab runner", "--scope", "track", *OLGA, "--json").json
    TokenItem(made["token_id"]).update(actions=[TokenItem.audit_head.set("0" * 64)])

    assert run("verify_audit").code == 1
