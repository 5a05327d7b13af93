"""Lists that lie in shares: a page reads a few of them, and goes on by itself while it is not full. None twice, none lost."""

from __future__ import annotations

import itertools
import random
import re
from collections.abc import Callable
from functools import partial
from typing import Any

import pytest
from django.test import Client
from pynamodb.connection.base import Connection

from accessportal.authz import operations
from accessportal.authz.models import ApprovalItem, shard_of
from accessportal.authz.policy.ends import is_over
from accessportal.authz.queries import APPROVALS, caller_of, read_scope
from accessportal.authz.states import Approval
from accessportal.authz.store import key_of
from accessportal.console.resource import PAGE_SIZE
from tests.console.test_authz import counted
from tests.console.test_page_costs import MOST, cost_of
from tests.depth import IS_DEEP
from tests.fixtures_story import Story
from tests.portal.test_journey import text_of

SignIn = Callable[[str], Client]
LISTS = ("pattern=ending", "pattern=scope&q=tenant:acme&below=yes")


def grant(story: Story, number: int, *, scope: str = "tenant:acme", seconds: int = 3_600) -> Approval:
    now = story.clock.now()
    wanted = Approval(read_scope(scope), f"bot-{number}", "docs/1", "GET", "olga@example.com", now)
    return operations.grant(APPROVALS, wanted, ttl_seconds=seconds, caller=caller_of(story.olga), now=now).record


@pytest.fixture
def ana(as_person: SignIn) -> Client:
    """What is counted once a session was counted."""
    client = as_person("ana")
    client.get("/admin/")
    return client


def pages_of(client: Client, query: str) -> list[list[Any]]:
    """Every page, each as the answers that it is made of; of each only so much as a page may cost."""
    pages, url = list[list[Any]](), f"/admin/approvals/?{query}"
    while url:
        parts = list[Any]()
        while url:
            headers = {"HX-Request": "true"} if parts else {}
            cost = cost_of(partial(lambda to, *given: to.append(client.get(given[0], headers=given[1])), parts, url, headers))
            assert cost.total() <= MOST, (url, cost)
            assert parts[-1].status_code == 200, url
            url = parts[-1].context["more_url"]
        pages.append(parts)
        url = parts[-1].context["next_url"]
    return pages


def names_in(page: list[Any]) -> list[str]:
    return [row.record.identity for part in page for row in part.context["rows"]]


@pytest.mark.parametrize("seed", range(20 if IS_DEEP else 3))
def test_every_record_is_listed_once_however_many_there_are(story: Story, ana: Client, seed: int) -> None:
    chance = random.Random(seed)
    granted = [
        grant(story, number, scope=chance.choice(("tenant:acme", "tenant:acme:env:prod")), seconds=chance.choice((60, 7_200, 86_400)))
        for number in range(chance.choice((0, 5, 30, 70)) + chance.randrange(10))
    ]
    story.clock.advance(60)
    counts = sorted(one.identity for one in granted if not is_over(one.expires_at, story.clock.now()))

    for query in LISTS:
        pages = pages_of(ana, query)
        names = [names_in(page) for page in pages]
        assert sorted(itertools.chain(*names)) == counts, query
        assert all(len(page) >= PAGE_SIZE for page in names[:-1]), query
        # Without scripts each part is a page of its own.
        alone, url = list[str](), f"/admin/approvals/?{query}"
        while url:
            answer = ana.get(url)
            alone += names_in([answer])
            url = answer.context["next_url"]
        assert sorted(alone) == counts, query


def numbers_in(shards: range) -> list[int]:
    """Of bots whose records lie in these shares, a few."""
    found = (number for number in itertools.count() if shard_of(f"bot-{number}", "docs/1", "GET") in shards)
    return list(itertools.islice(found, 3))


@pytest.mark.parametrize("query", LISTS)
def test_a_page_whose_first_part_is_empty_goes_on_before_it_says_so(story: Story, ana: Client, query: str) -> None:
    ((first, last),) = pages_of(ana, query)
    assert "Looking further" in text_of(first)
    assert any(words in text_of(last) for words in ("Nothing ends so soon", "No approvals in this scope"))
    assert "First page" not in text_of(last)

    numbers = numbers_in(range(8, 16))
    for number in numbers:
        grant(story, number)
    ((first, last),) = pages_of(ana, query)
    assert (names_in([first]), sorted(names_in([last]))) == ([], sorted(f"bot-{number}" for number in numbers))
    assert "Nothing" not in text_of(last)
    # Of the rows of both parts none has the name of another.
    shown = sorted(re.findall(r'id="(row-[0-9]+)"', last.content.decode()))
    assert shown == ["row-1", "row-2", "row-3"]


def test_what_can_not_be_read_is_named_in_the_part_where_it_lies(story: Story, ana: Client) -> None:
    (early, *_), (late, *_) = numbers_in(range(8)), numbers_in(range(8, 16))
    for number in (early, late):
        record = grant(story, number)
        ApprovalItem.get(*key_of(record.scope, record.names)).update([ApprovalItem.granted_at.remove()])

    for query in LISTS:
        ((first, last),) = pages_of(ana, query)
        assert [f"#bot-{early}, " in one.content.decode() for one in (first, last)] == [True, False]
        assert [f"#bot-{late}, " in one.content.decode() for one in (first, last)] == [False, True]
        assert "Nothing else is on this list" in text_of(last)


def test_a_count_says_where_it_did_not_reach_the_end(story: Story, ana: Client, monkeypatch: pytest.MonkeyPatch) -> None:
    (number, *_) = numbers_in(range(1))
    for scope in ("tenant:acme", "tenant:acme:env:prod", "tenant:acme:env:dev"):
        grant(story, number, scope=scope)
    assert counted(ana, "tenant:acme", "?below=yes") == "3 approvals and 0 relationships"
    assert ana.get(f"/admin/scopes/tenant:other/counts/?cursor={cursor_of(ana)}").status_code == 400

    # As if one answer of the engine had room for one record.
    dispatch = Connection.dispatch
    monkeypatch.setattr(Connection, "dispatch", lambda self, name, given: dispatch(self, name, given | limit_of(given)))
    assert counted(ana, "tenant:acme", "?below=yes") == "at least 1 approval and 0 relationships"


def limit_of(given: dict[str, Any]) -> dict[str, Any]:
    return {"Limit": 1} if given.get("Select") == "COUNT" else {}


def cursor_of(client: Client) -> str:
    url = client.get("/admin/scopes/tenant:acme/counts/").context["next_url"]
    return str(url).partition("cursor=")[2]
