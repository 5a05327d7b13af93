"""Lists that are longer than one request reaches: what is looked for in them is found, and costs no more than in short ones."""

from __future__ import annotations

import uuid
from collections.abc import Callable
from typing import Any

import boto3
import pytest
from django.test import Client

from accessportal.access_requests import queries
from accessportal.access_requests.states import AccessRequest
from accessportal.directory import queries as directory
from accessportal.kernel.counts import Count
from tests.console.test_page_costs import MOST, cost_of, costs_of
from tests.fixtures_story import Story
from tests.fixtures_twin import REGION

SignIn = Callable[[str], Client]
WAITING = "/admin/requests/?pattern=waiting"
FOR_ME = "/fragments/for-me/"
BADGE = "/fragments/approvals/"
LOOKED_THROUGH = (
    WAITING,
    f"{WAITING}&kind=group&person=nobody",
    "/admin/requests/?pattern=pending&rule=nothing",
    "/admin/requests/?pattern=unreadable",
    "/admin/requests/?pattern=stuck",
    "/admin/requests/?pattern=all&state=DENIED&q=alice@example.com",
    "/admin/people/?pattern=disabled",
    "/admin/audit/?pattern=actor&q=alice@example.com&action=nothing",
    "/requests/?kind=sandbox",
    FOR_ME,
    BADGE,
)


def table(name: str) -> Any:
    return boto3.resource("dynamodb", region_name=REGION).Table(name)


def copy(request: AccessRequest, times: int) -> None:
    """As many more like it, each with a nearer deadline or end."""
    item = table("ActiveRequests").get_item(Key={"request_id": request.request_id})["Item"]
    with table("ActiveRequests").batch_writer() as batch:
        for number in range(times):
            batch.put_item({**item, "request_id": str(uuid.uuid4()), "expires_at": int(item["expires_at"]) - 5_000 + number})


def people(numbers: range) -> None:
    with table("AccessManagement").batch_writer() as batch:
        for number in numbers:
            key = f"U:p{number:04}@example.com"
            batch.put_item(
                {"pk": key, "sk": key, "siKey1": "U", "email": key[2:], "state": "enabled", "createdAt": "2026-01-01T00:00:00.000Z"}
            )


@pytest.fixture
def three(story: Story) -> set[str]:
    """What Bob may decide, with the last deadlines."""
    return {story.ask_for_prod().request_id for _ in range(3)}


def seen(client: Client, address: str, **headers: str) -> tuple[Any, int]:
    """The page, and what it cost."""
    answers = list[Any]()
    cost = cost_of(lambda: answers.append(client.get(address, **headers)))  # type: ignore[arg-type]
    return answers[0], cost.total()


def test_bob_finds_his_three_behind_two_thousand_that_wait_for_others(story: Story, as_person: SignIn, three: set[str]) -> None:
    """By a rule, too, by which he might decide some of them."""
    others = story.ask_to_join(role="contributor")
    bob = as_person("bob")
    bob.get("/")
    (_, cost), (_, cost_of_badge) = seen(bob, WAITING), seen(bob, BADGE)
    copy(others, 2_000)

    page, cost_now = seen(bob, WAITING)
    assert "Looking further" in page.content.decode()
    assert [one["tally"] for one in page.context["tabs"] if one["is_current"]] == [""], "which the bar tells"
    assert cost_now == cost <= MOST
    rows, looks = list[str](), 1
    while address := page.context["more_url"]:
        page, cost_now = seen(bob, address, HTTP_HX_REQUEST="true")
        assert cost_now <= cost
        rows, looks = [*rows, *(row.key for row in page.context["rows"])], looks + 1
    assert (set(rows), looks) == (three, 5)

    for_me, cost_now = seen(bob, FOR_ME)
    assert {one.request_id for one, _, _ in for_me.context["waiting"]} == three
    assert for_me.context["count"] == Count(3, is_more=True)
    assert "3 of 3+, see all" in for_me.content.decode()
    assert cost_now <= MOST
    badge, cost_now = seen(bob, BADGE)
    assert (badge.context["count"], cost_now) == ("3+", cost_of_badge)


def test_what_may_be_missing_from_a_count_is_told(story: Story, as_person: SignIn, three: set[str]) -> None:
    copy(story.ask_to_join(role="contributor"), 510)
    (one, *_) = sorted(three)
    table("ActiveRequests").update_item(Key={"request_id": one}, UpdateExpression="REMOVE subject_id, open_subject")
    bob = as_person("bob")

    told = bob.get(FOR_ME)

    assert told.context["count"] == Count(2, is_more=True)
    assert f"The item {one} of the table" in told.content.decode()
    assert "2 of 2+" in told.content.decode()
    assert bob.get(BADGE).context["count"] == "2+"


def test_what_is_looked_through_costs_no_more_when_it_is_long(story: Story, as_person: SignIn) -> None:
    active, pending, joins = story.carry_out(story.ask()), story.ask_for_prod(), story.ask_to_join(role="contributor")
    story.deny(story.ask_for_prod())
    people(range(3))
    olga, alice = as_person("olga"), as_person("alice")
    clients = {page: alice if page.startswith("/requests/") else olga for page in LOOKED_THROUGH}
    for client in (olga, alice):
        client.get("/")
    small = {page: costs_of(client, (page,), {})[page] for page, client in clients.items()}

    copy(active, 510)
    copy(pending, 255)
    copy(joins, 255)
    people(range(3, 510))
    big = {page: costs_of(client, (page,), {})[page] for page, client in clients.items()}

    assert {page: (small[page], cost) for page, cost in big.items() if not small[page].total() >= cost.total() <= MOST} == {}


def test_a_page_of_what_is_looked_through_ends_where_it_is_full(story: Story) -> None:
    """Going on from there, nothing is missed and nothing comes twice, what can't be read included."""
    story.carry_out(story.ask())
    prod, joins = story.ask_for_prod(), story.ask_to_join(role="contributor")
    copy(prod, 40)
    copy(joins, 40)
    everything = queries.list_pending(actor=story.olga, now=story.clock.now(), limit=200).items
    for number in (5, 30, 70):
        key = {"request_id": everything[number].request_id}
        table("ActiveRequests").update_item(Key=key, UpdateExpression="REMOVE reason")
    expected = [one.request_id for at, one in enumerate(everything) if one.rule_name == prod.rule_name and at not in {5, 30, 70}]

    for limit in (1, 7, 25, 41, 200):
        found, broken, cursor = list[str](), list[str](), None
        while True:
            page = queries.list_waiting_for(actor=story.bob, now=story.clock.now(), cursor=cursor, limit=limit)
            assert len(page.items) <= limit
            found += [one.request_id for one in page.items]
            broken += [one.key for one in page.unreadable]
            if (cursor := page.next_cursor) is None:
                break
        assert found == expected
        assert broken == [everything[number].request_id for number in (5, 30, 70)]


def test_whoever_is_disabled_is_found_behind_many_others(story: Story, as_person: SignIn) -> None:
    people(range(600))
    for name in ("p0599", "p0598"):
        key = f"U:{name}@example.com"
        table("AccessManagement").update_item(
            Key={"pk": key, "sk": key},
            UpdateExpression="SET #s = :s",
            ExpressionAttributeNames={"#s": "state"},
            ExpressionAttributeValues={":s": "disabled"},
        )
    found, cursor, reads = list[str](), None, 0
    while reads == 0 or cursor:
        page = directory.list_disabled(cursor=cursor, limit=25)
        found, cursor, reads = [*found, *(one.key for one in page.items)], page.next_cursor, reads + 1

    assert found == ["p0598@example.com", "p0599@example.com"]
    assert reads == 2
    assert "Looking further" in as_person("olga").get("/admin/people/?pattern=disabled").content.decode()
