"""The same answers by commands, by the API and after the job; each for whom it is."""

from __future__ import annotations

import json
from datetime import timedelta
from typing import Any

import pytest
from django.test import Client

from accessportal.history import queries
from accessportal.jobs import tasks
from accessportal.kernel.clock import to_epoch
from accessportal.kernel.errors import NoAnswer
from accessportal.observe import health, heartbeats
from accessportal.observe.metrics import PortalCollector
from accessportal.tokens import operations as tokens
from accessportal.tokens.states import Scope
from accessportal.web.holdings import names_of, page_of
from tests.commands.conftest import run
from tests.fixtures_story import Story

pytestmark = pytest.mark.django_db
REVERSED = "“From” must lie before “To”. Give the earlier moment first."


@pytest.fixture
def told(story: Story, monkeypatch: pytest.MonkeyPatch) -> Story:
    """Alice has an account, and the job has been by since."""
    monkeypatch.setattr(tasks, "_CLOCK", story.clock)
    monkeypatch.setattr("accessportal.commands.base.SystemClock", lambda: story.clock)
    story.carry_out(story.approve(story.ask_for_prod()))
    story.clock.advance(300)
    assert "parts_left 0" in tasks.follow_history()
    return story


def test_commands(told: Story) -> None:
    at = f"{told.clock.now() - timedelta(minutes=5):%Y-%m-%dT%H:%M:%SZ}"
    who = run("who_had", "--account", "payments-prod", "--at", at, "--as", "ana@example.com", "--json").json
    (held,) = who["held"]
    assert (held["who"], held["interval"]["rule"], held["interval"]["decided_by"]) == (
        "alice@example.com",
        "prod-readonly",
        ["bob@example.com"],
    )
    period = ("--from", "2026-03-01T00:00:00Z", "--to", "2026-03-03T00:00:00Z")
    during = run("who_had", "--account", "payments-prod", *period, "--as", "ana@example.com", "--json").json
    assert during["held"] == who["held"]
    assert (during["from"][:10], during["to"][:10]) == ("2026-03-01", "2026-03-03")
    before = ("--from", "2026-02-01T00:00:00Z", "--to", "2026-03-01T00:00:00Z")
    assert "Nobody." in run("who_had", "--account", "payments-prod", *before, "--as", "ana@example.com").out
    for wrong, code in (
        (("--at", at, *period), "time_ambiguous"),
        (period[2:], "time_ambiguous"),
        (("--from", "2025-02-01T00:00:00Z", *period[2:]), "time_too_long"),
    ):
        refused = run("who_had", "--account", "payments-prod", *wrong, "--as", "ana@example.com", "--json")
        assert (refused.code, refused.json["error"]["code"]) == (1, code)
    shown = run("who_had", "--account", "payments-prod", "--at", at, "--as", "ana@example.com").out
    assert "alice@example.com" in shown
    assert "Known up to 2026-03-02" in shown
    assert "Nobody." in run("who_had", "--sandbox", "nothing", "--at", at, "--as", "olga@example.com").out
    what = ("what_had", "alice@example.com", "--from", "2026-03-01T00:00:00Z", "--to", "2026-03-03T00:00:00Z")
    assert {one["interval"]["thing"]["kind"] for one in run(*what, "--as", "alice@example.com", "--json").json["held"]} == {
        "account",
        "group",
    }
    assert run(*what, "--as", "bob@example.com").code == 1
    assert run("who_had", "--account", "payments-prod", "--at", at, "--as", "alice@example.com").code == 1
    assert run("who_had", "--account", "payments-prod", "--at", "yesterday", "--as", "ana@example.com").code == 2
    assert run("who_had", "--approval", "tenant:acme", "--at", at, "--as", "ana@example.com").code == 1
    assert "Nobody." in run("who_had", "--account", "000000000001", "--at", at, "--as", "ana@example.com").out


@pytest.mark.parametrize(
    ("flag", "name", "code"),
    [("--account", "payment-prod", "account_unknown"), ("--lease", "a lab", "lease_unknown"), ("--group", "security", "group_unreadable")],
)
def test_a_name_that_nothing_can_have_is_no_empty_answer(told: Story, flag: str, name: str, code: str) -> None:
    answer = run("who_had", flag, name, "--as", "ana@example.com", "--json")
    assert (answer.code, answer.json["error"]["code"]) == (1, code)


def test_health_says_that_the_history_lags(told: Story, monkeypatch: pytest.MonkeyPatch) -> None:
    """However well its runs end: one that has more to read than it manages is behind, too."""
    assert health.history(told.clock.now()) == ""
    known_until = told.clock.now() - timedelta(minutes=2)
    told.clock.advance(20 * 60)
    late = health.work(now=told.clock.now()).missing["follow_history"]
    assert late == f"Who had what is known up to {known_until:%Y-%m-%d %H:%M:%S} UTC only. Look at the worker's log for “follow_history”."
    with monkeypatch.context() as away:
        away.setattr(
            "accessportal.history.operations.audit.events_between", lambda *_: (_ for _ in ()).throw(NoAnswer("Away.", code="away"))
        )
        with pytest.raises(NoAnswer):
            tasks.follow_history()
        assert health.history(told.clock.now()) == late
    tasks.follow_history()
    assert health.history(told.clock.now()) == ""
    (items,) = (one for one in PortalCollector(now=told.clock.now()).collect() if one.name == "accessportal_last_run_items")
    known = {sample.labels["kind"]: sample.value for sample in items.samples if sample.labels["part"] == "follow_history"}["known_until"]
    assert known == (told.clock.now() - timedelta(minutes=2)).replace(microsecond=0).timestamp()


def test_health_says_that_the_history_is_not_being_made_any_more(story: Story) -> None:
    heartbeats.beat(heartbeats.HISTORY, now=story.clock.now(), detail={"parts_left": 3})
    assert health.history(story.clock.now()) == ""
    story.clock.advance(20 * 60)
    assert "in the making without a sign of life" in health.history(story.clock.now())


def test_what_is_newer_than_an_answer_is_known_is_told_and_may_be_incomplete(told: Story) -> None:
    """No face says that nothing of it is there."""
    told.carry_out(told.ask())
    tasks.follow_history()
    begin, end = told.clock.now() - timedelta(days=1), told.clock.now() + timedelta(minutes=1)
    answer = queries.what_had(email="alice@example.com", begin=begin, end=end, actor=told.alice)
    assert max(held.from_at for held in answer.page.items) > answer.known_until
    may_be = "of what happened since, some may be missing."
    assert may_be in page_of(answer).remarks[0]
    assert may_be in run("who_had", "--account", "payments-dev", "--as", "ana@example.com").out


def test_reversed_times_are_refused_with_the_names_of_the_fields(told: Story) -> None:
    given = ("--from", "2026-03-03T00:00:00Z", "--to", "2026-03-02T00:00:00Z")
    command = run("what_had", "alice@example.com", *given, "--as", "alice@example.com", "--json")
    assert (command.code, command.json["error"]) == (1, {"code": "time_reversed", "message": REVERSED, "field": "to"})
    made = tokens.create_token(name="siem", scope=Scope.HISTORY, actor=told.olga, now=told.clock.now())
    address = "/v1/history/what-had?email=alice@example.com&from=1767571200&to=1767484800"
    answer = Client().get(address, headers={"Authorization": f"Bearer {made.text}"})
    error = answer.json()["error"]
    assert (answer.status_code, error["message"], error["field"]) == (400, REVERSED, "to")


def test_the_names_of_all_accounts_of_an_answer_take_one_query(told: Story, django_assert_num_queries: Any) -> None:
    told.carry_out(told.ask())
    tasks.follow_history()
    now = told.clock.now()
    held = queries.what_had(email="alice@example.com", begin=now - timedelta(days=1), end=now, actor=told.alice).page.items
    with django_assert_num_queries(1):
        names = names_of(held)
    assert names == {told.twin.accounts[name]: name for name in ("payments-prod", "payments-dev")}


def test_made_anew_by_an_operator(told: Story) -> None:
    assert run("rebuild_history", "--as", "ana@example.com").code == 1
    assert run("rebuild_history", "--as", "olga@example.com", "--json").json["parts_left"] == 0


def test_api(told: Story) -> None:
    now = told.clock.now()
    made = tokens.create_token(name="siem", scope=Scope.HISTORY, actor=told.olga, now=now)
    headers = {"Authorization": f"Bearer {made.text}"}

    def get(path: str) -> Any:
        response = Client().get(f"/v1/history/{path}", headers=headers)
        assert response.status_code == 200, response.content
        return json.loads(response.content)

    told_at = to_epoch(now) - 300
    page = get(f"who-had?kind=account&name=payments-prod&at={told_at}&right=ReadOnlyAccess")
    (held,) = page["items"]
    assert (held["who"], held["interval"]["decided_by"], held["over_at"]) == ("alice@example.com", ["bob@example.com"], None)
    assert page["known_until"] == to_epoch(now) - 120
    during = get(f"who-had?kind=account&name=payments-prod&from={told_at - 3600}&to={told_at + 1}&right=ReadOnlyAccess")
    assert during["items"] == page["items"]
    assert not get(f"who-had?kind=account&name=payments-prod&from={told_at - 7200}&to={told_at - 3600}")["items"]
    for wrong in (f"at={told_at}&from=1&to=2", "from=1", "to=2", "", f"from=1&to={told_at}", "from=2&to=1"):
        assert Client().get(f"/v1/history/who-had?kind=account&name=payments-prod&{wrong}", headers=headers).status_code == 400, wrong
    what = get(f"what-had?email=alice@example.com&from={told_at - 3600}&to={told_at + 1}&limit=1")
    assert (len(what["items"]), bool(what["next_cursor"])) == (1, True)
