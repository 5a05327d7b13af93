"""Who had what, on the pages: for those who read everything, and for everybody about themselves."""

from __future__ import annotations

import csv
import io
import json
import re
from collections.abc import Callable
from datetime import timedelta

import pytest
from django.template.loader import render_to_string
from django.test import Client

from accessportal.access_requests.operations import end
from accessportal.history import policy, queries
from accessportal.history.operations import follow
from accessportal.history.states import Answer
from accessportal.kernel.pages import Page
from accessportal.web.moments import to_text
from tests.fixtures_story import Story

SignIn = Callable[[str], Client]
WHO = "/admin/history/?pattern=who&"
WHAT = "/admin/history/?pattern=what&"


@pytest.fixture
def told(story: Story, monkeypatch: pytest.MonkeyPatch) -> Story:
    """Alice holds payments-prod, which Bob approved, and her group payments-dev; then the history has followed."""
    monkeypatch.setattr(policy, "PARTS", 1)
    story.carry_out(story.approve(story.ask_for_prod()))
    story.carry_out(story.ask(subject_id="/engineering/payments"))
    assert follow(workers=1, clock=story.clock).is_ok
    return story


def text(client: Client, url: str, status: int = 200) -> str:
    answer = client.get(url)
    assert answer.status_code == status, (url, answer.status_code)
    return " ".join(answer.content.decode().split())


def sent(client: Client, url: str) -> str:
    return b"".join(client.get(url).streaming_content).decode()  # type: ignore[attr-defined]


def test_an_auditor_reads_who_had_an_account_at_a_moment(told: Story, as_person: SignIn) -> None:
    at = to_text(told.clock.now())

    page = text(as_person("ana"), f"{WHO}q=payments-prod&kind=account&at={at}")

    for words in ("alice@example.com", "ReadOnlyAccess", "payments-prod", "prod-readonly", "decided by bob@example.com", "Proved present"):
        assert words in page, words
    assert "Known up to" in page
    for known in (page, text(as_person("alice"), "/history/")):
        assert "of what happened since, some may be missing" in known
    assert "As it was at" in page
    assert f'data-utc="{at}"' in page
    # The whole id of a job is not among the words, and not lost.
    ((whole, said),) = re.findall(r'<div class="small-2" title="(Proved present[^"]*)">(Proved present[^<]*) <time', page)
    assert said == re.sub(r"([0-9a-f]{8})-[0-9a-f-]{23}([0-9a-f]{4})", r"\1…\2", whole) != whole


def test_what_was_asked_for_an_account_is_one_click_from_who_had_it(told: Story, as_person: SignIn) -> None:
    ana = as_person("ana")

    page = text(ana, f"{WHO}q=payments-prod&kind=account")

    (url,) = re.findall(r'href="([^"]+)">Asked for in the last 30 days<', page)
    listed = ana.get(url.replace("&amp;", "&"))
    assert [row.record.account_id for row in listed.context["rows"]] == [told.twin.accounts["payments-prod"]]
    assert "Asked for in the last" not in text(ana, f"{WHO}q=/engineering/payments&kind=group")


def test_an_auditor_reads_who_had_an_account_on_some_days(told: Story, as_person: SignIn) -> None:
    """Also who has it no more; the days stand in the place of the moment that the form has filled in."""
    ana = as_person("ana")
    (row,) = ana.get(f"{WHO}q=payments-prod&kind=account").context["rows"]
    told.carry_out(end(request_id=row.record.interval.request_id, actor=told.alice, now=told.clock.now()))
    told.clock.advance(86_400)
    assert follow(workers=1, clock=told.clock).is_ok
    today = told.clock.now().date()
    asked = f"{WHO}q=payments-prod&kind=account&at={to_text(told.clock.now())}"
    assert not ana.get(asked).context["rows"]

    page = ana.get(f"{asked}&since={today - timedelta(days=1)}")

    assert [row.record.who for row in page.context["rows"]] == ["alice@example.com"]
    assert "Whoever had it at any time from" in page.content.decode()
    assert f'name="since" value="{today - timedelta(days=30)}"' in page.content.decode()
    _, (_, as_json) = page.context["exports"]
    assert "at=" not in as_json
    assert len(json.loads(sent(ana, as_json))["rows"]) == 1
    assert not ana.get(f"{asked}&since={today}").context["rows"]
    assert not ana.get(f"{asked}&since={today - timedelta(days=3)}&until={today - timedelta(days=2)}").context["rows"]


def test_a_group_is_followed_by_whoever_was_in_it(told: Story, as_person: SignIn) -> None:
    page = as_person("ana").get(f"{WHO}q=payments-dev&kind=account")

    assert [row.record.who for row in page.context["rows"]] == ["/engineering/payments", "alice@example.com"]
    assert "by /engineering/payments" in " ".join(page.content.decode().split())
    assert "everybody in this group" in page.content.decode()


def test_a_moment_is_typed_in_the_zone_of_whoever_looks(told: Story, as_person: SignIn) -> None:
    ana, now = as_person("ana"), told.clock.now()
    before = (now - timedelta(days=1)).replace(microsecond=0)
    typed = f"{before + timedelta(hours=5, minutes=30):%Y-%m-%dT%H:%M:%S}"

    page = ana.get(f"{WHO}q=payments-prod&kind=account&at={typed}&zone=Asia/Kolkata")

    assert page.context["page"].at == before
    assert "Nobody had it then" in page.content.decode()
    assert "zone=" not in page.context["first_url"]
    # Without scripts there is no zone.
    assert ana.get(f"{WHO}q=payments-prod&kind=account&at={before:%Y-%m-%dT%H:%M:%S}").context["page"].at == before


@pytest.mark.parametrize(
    ("query", "words"),
    [
        (f"{WHO}q=payments-prod&kind=account&at=yesterday", "is no moment"),
        (f"{WHO}q=payments-prod&since=yesterday", "is not a day"),
        (f"{WHO}q=payments-prod&until=2026-03-02", "Give the first day, too"),
        (f"{WHO}q=payments-prod&since=2026-03-02&until=2026-03-01", "The last day is before the first day"),
        (f"{WHO}q=payments-prod&since=2025-02-01&until=2026-03-01", "Ask for a year at a time"),
        (f"{WHO}q=payments-prod&kind=castle", "Choose what it is"),
        (f"{WHO}q=docs&kind=approval", "Give its scope"),
        (f"{WHAT}q=alice@example.com&from=2026-03-02T00:00:00Z&to=2026-03-01T00:00:00Z", "Give the earlier moment first"),
        (f"{WHAT}q=alice@example.com&from=2020-03-02T00:00:00Z", "Ask for a year at a time"),
    ],
)
def test_what_can_not_be_looked_up_is_said_beside_the_form(told: Story, as_person: SignIn, query: str, words: str) -> None:
    page = text(as_person("ana"), query, 400)

    assert words in page
    assert "This can’t be looked up" in page


def test_all_that_somebody_had_by_page_and_by_file(told: Story, as_person: SignIn) -> None:
    ana = as_person("ana")
    page = ana.get(f"{WHAT}q=alice@example.com")
    (_, as_csv), (_, as_json) = page.context["exports"]
    rows = list(csv.DictReader(io.StringIO(sent(ana, as_csv).removeprefix("\ufeff"))))
    document = json.loads(sent(ana, as_json))

    rights = {(row.record.interval.thing.kind.value, row.record.interval.right) for row in page.context["rows"]}
    assert {("account", "ReadOnlyAccess"), ("account", "PowerUserAccess")} <= rights
    assert {row["right"] for row in rows[:-2]} == {row["right"] for row in document["rows"]} == {right for _, right in rights}
    assert rows[-2]["who"].startswith("# Known up to 20")
    assert document["remarks"] == [rows[-2]["who"].removeprefix("# ")]
    assert document["asked"]["q"] == "alice@example.com"


@pytest.mark.parametrize(
    ("reason", "decider", "words"),
    [
        ("permanent", "system:setup", "Given by the portal itself, without a request"),
        ("permanent", "gina@example.com", "Given by an admin decided by gina@example.com"),
        ("direct", "system:setup", "Given by the portal itself, without a request"),
        ("direct", "gina@example.com", "Granted by hand decided by gina@example.com"),
        ("outside", "system:compare", "Found in AWS, without a request"),
    ],
)
def test_what_the_portal_gave_itself_is_not_said_to_be_an_admins(reason: str, decider: str, words: str) -> None:
    it = {"reason": reason, "decided_by": (decider,)}
    told = re.sub(r"<[^>]+>", " ", render_to_string("web/held/reason.html", {"it": it}))
    assert " ".join(told.split()) == words


def test_the_next_page_asks_for_the_same_moment(told: Story, as_person: SignIn, monkeypatch: pytest.MonkeyPatch) -> None:
    ana, whole = as_person("ana"), queries.who_had
    monkeypatch.setattr("accessportal.console.resource.PAGE_SIZE", 1)

    def one(**asked: object) -> Answer:
        return whole(**{**asked, "limit": 1})  # type: ignore[arg-type]

    monkeypatch.setattr(queries, "who_had", one)
    first = ana.get(f"{WHO}q=/engineering&kind=group")
    told.clock.advance(5)

    assert ana.get(first.context["next_url"]).status_code == 200


def test_everybody_reads_their_own_and_nobody_elses(told: Story, as_person: SignIn) -> None:
    alice = as_person("alice")
    mine = text(alice, "/history/")

    assert "ReadOnlyAccess" in mine
    assert "through" not in mine or "payments" in mine
    assert "/admin/" not in mine.partition("<main")[2]
    assert "prod-readonly" in sent(alice, "/history/export/csv/")
    assert "Did you mean from?" in text(alice, "/history/export/csv/?form=2026-03-01T00:00:00Z", 400)
    assert "You had nothing in that time" in text(as_person("mallory"), "/history/")
    assert "Everything you had" in text(alice, "/people/alice@example.com/")
    assert "What I had" in text(alice, "/")
    assert f"{WHAT}q=alice%40example.com".replace("&", "&amp;") in text(as_person("ana"), "/people/alice@example.com/")
    for closed in (WHO, WHAT, "/admin/history/export/csv/?q=payments-prod&kind=account"):
        text(alice, closed, 403)
        text(as_person("bob"), closed, 403)
    assert "Give the earlier moment first" in text(alice, "/history/?from=2026-03-02T00:00:00Z&to=2026-03-01T00:00:00Z", 400)


def test_a_page_of_nothing_leads_on(told: Story, as_person: SignIn, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(queries, "what_had", lambda **_: Answer(Page((), "more"), told.clock.now()))

    mine = text(as_person("alice"), "/history/")

    assert "Nothing so far" in mine
    shown = text(as_person("ana"), f"{WHAT}q=alice@example.com")
    assert "Looking further" in shown
    assert "Next page" in shown
    assert "They had nothing" not in shown


def test_before_the_history_is_made_nothing_looks_like_an_answer(story: Story, as_person: SignIn) -> None:
    for client, url in ((as_person("ana"), f"{WHO}q=payments-prod&kind=account"), (as_person("alice"), "/history/")):
        page = text(client, url, 503)
        assert "The history is not ready" in page
        assert "of 64 parts are done" in page
