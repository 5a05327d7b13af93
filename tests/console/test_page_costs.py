"""What every page costs in requests to the tables: at most twelve, and no more with more people, groups and requests."""

from __future__ import annotations

import uuid
from collections import Counter
from collections.abc import Callable, Iterable
from typing import Any
from unittest import mock

import boto3
import pytest
from django.test import Client
from pynamodb.connection.base import Connection

from accessportal.directory import operations as directory
from accessportal.directory.states import GroupRole
from accessportal.history import policy
from accessportal.history.operations import follow
from tests.console.test_lists import EVERY_PAGE, OPERATORS_PAGES
from tests.fixtures_story import Story
from tests.fixtures_twin import REGION

MOST = 12

PORTAL_PAGES = (
    "/",
    "/help/",
    "/stand-ins/",
    "/accounts/",
    "/sandboxes/",
    "/groups/",
    "/groups/?open=/engineering/payments",
    "/groups/?q=g",
    "/groups/at/engineering/",
    "/groups/at/engineering/payments/",
    "/groups/search/?parent_id=g",
    "/groups/branch/at/engineering/",
    "/people/{who}/",
    "/people/{who}/live/",
    "/people/search/?text=al&list=who&groups=yes",
    "/people/{who}/?groups_from=3",
    "/people/olga@example.com/",
    "/people/{who}/disable/",
    "/people/{who}/delete/",
    "/requests/new/",
    "/requests/new/aws_account/",
    "/requests/new/aws_account/?account=payments-prod&permission_set=ReadOnlyAccess&duration=1h",
    "/requests/new/aws_account/choices/account/?account=pay",
    "/requests/new/group/?group=/engineering&role=reader",
    "/requests/new/sandbox/",
    "/requests/{active}/",
    "/requests/{active}/live/",
    "/requests/{pending}/",
    "/requests/{pending}/approve/",
    "/requests/{active}/end/",
    "/fragments/for-me/",
    "/fragments/approvals/",
    "/groups/add/at/engineering/",
    "/groups/disable/at/engineering/",
    "/groups/role/at/engineering/payments/?email=alice@example.com",
)
CONSOLE_PAGES = (
    "/admin/requests/",
    *(
        f"/admin/requests/?pattern={name}"
        for name in ("waiting", "pending", "decided", "active", "ending", "stuck", "undecidable", "unreadable", "all")
    ),
    "/admin/requests/?pattern=all&q=alice@example.com",
    "/admin/requests/{active}/history/",
    "/admin/requests/{pending}/around/",
    "/admin/drift/",
    "/admin/people/holdings/?first=0&key=alice@example.com&key=bob@example.com&key=sam@example.com&key=gina@example.com&key=p1@example.com",
    "/admin/accounts/{account}/",
    "/admin/approvals/?pattern=scope&q=tenant:acme",
    "/admin/scopes/tenant:acme/counts/",
    "/admin/scopes/tenant:acme/counts/?of=approval&below=yes",
)


def grow(numbers: Iterable[int]) -> None:
    """Groups with these numbers below security and engineering, with a member each, in all of which Alice and Olga are."""
    with boto3.resource("dynamodb", region_name=REGION).Table("AccessManagement").batch_writer() as batch:
        for number in numbers:
            above = ("/security", "/engineering", "/engineering/payments")[number % 3]
            group, email = f"{above}/g{number}", f"p{number}@example.com"
            ancestors = ["/", *(["/engineering"] if above.endswith("/payments") else []), above]
            common = {"state": "enabled", "createdAt": "2026-01-01T00:00:00.000Z"}
            batch.put_item({"pk": f"G:{group}", "sk": f"G:{group}", "siKey1": "G", "id": group, "ancestors": ancestors, **common})
            batch.put_item({"pk": f"U:{email}", "sk": f"U:{email}", "siKey1": "U", "email": email, **common})
            for one in (email, "alice@example.com", "olga@example.com"):
                batch.put_item({"pk": f"U:{one}", "sk": f"G:{group}", "siKey1": f"M:{group}", "role": "reader"})


def ask_for(numbers: Iterable[int]) -> None:
    """Requests of these numbers as those that Alice has: each once more for somebody else, and once more for a group."""
    client: Any = boto3.client("dynamodb", region_name=REGION)
    items = client.scan(TableName="ActiveRequests")["Items"]
    patterns = [one for one in items if one["subject_id"]["S"] == "alice@example.com" and one["request_id"]["S"][0] != "c"]
    for number in numbers:
        for item in patterns:
            who = {"S": f"p{number}@example.com"}
            subject = {"S": f"/engineering/g{number}"} if number % 5 == 1 else who
            copy = {**item, "request_id": {"S": "c" + str(uuid.uuid4())[1:]}, "subject_id": subject, "requested_by": who}
            if "open_subject" in item:
                copy["open_subject"] = subject
            client.put_item(TableName="ActiveRequests", Item=copy)


def cost_of(action: Callable[[], object]) -> Counter[str]:
    """By operation, table and index."""
    with mock.patch.object(Connection, "dispatch", autospec=True, side_effect=Connection.dispatch) as dispatch:
        action()
    return Counter(
        f"{call.args[1]} {call.args[2].get('TableName', '')} {call.args[2].get('IndexName', '')}".strip()
        for call in dispatch.call_args_list
    )


def costs_of(client: Client, pages: Iterable[str], names: dict[str, str]) -> dict[str, Counter[str]]:
    """Of each page, when what is counted once a session was counted."""
    costs = {}
    for page in pages:
        address, answers = page.format(**names), list[Any]()
        costs[page] = cost_of(lambda address=address, answers=answers: answers.append(client.get(address)))  # type: ignore[misc]
        assert answers[0].status_code == 200, (address, answers[0].status_code)
    return costs


def test_no_page_takes_more_than_twelve_requests_or_more_in_a_bigger_directory(story: Story, as_person: Any) -> None:
    active, pending = story.carry_out(story.ask()), story.ask_for_prod()
    account = story.twin.accounts["payments-dev"]
    names = {"active": active.request_id, "pending": pending.request_id, "account": account, "who": "alice@example.com"}
    olga = as_person("olga")
    olga.get("/admin/")
    pages = tuple(dict.fromkeys((*PORTAL_PAGES, *CONSOLE_PAGES, *EVERY_PAGE, *OPERATORS_PAGES)))
    grow(range(3))
    # The last is for a group that Olga is not in.
    ask_for((*range(5), 46))
    small = costs_of(olga, pages, names)

    grow(range(3, 30))
    ask_for(range(5, 50))
    big = costs_of(olga, pages, names)

    # Where pages stand: pytest -s.
    for page, cost in big.items():
        print(f"{small[page].total():4} {cost.total():4} {page}")  # noqa: T201
    assert {page: cost for page, cost in big.items() if cost.total() > MOST} == {}
    assert {page: (small[page], cost) for page, cost in big.items() if cost.total() > small[page].total()} == {}


def all_pages(client: Client, address: str) -> tuple[list[int], int]:
    """What each page of a list costs, to its end, and how many rows they have together."""
    costs, rows = [], 0
    while address:
        answers: list[Any] = []
        costs.append(cost_of(lambda address=address, answers=answers: answers.append(client.get(address))).total())  # type: ignore[misc]
        rows += len(answers[0].context["rows"])
        address = answers[0].context["next_url"]
    return costs, rows


def test_no_page_of_who_had_what_takes_more_however_many_groups_lie_below_or_above(
    story: Story, as_person: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of an account that a group had, of a group with others below, of one far below, and of a person in all of them."""
    monkeypatch.setattr(policy, "PARTS", 1)
    team, deep = "/engineering/payments", "/engineering/payments/g0/a/b/c/d"
    story.carry_out(story.ask(subject_id=team))
    olga = as_person("olga")
    olga.get("/admin/")
    pages = (
        "/admin/history/?pattern=who&kind=account&q=payments-dev",
        f"/admin/history/?pattern=who&kind=group&q={team}",
        f"/admin/history/?pattern=who&kind=group&q={deep}",
        "/admin/history/?pattern=what&q=alice@example.com",
    )
    found = []
    for numbers in (range(3), range(3, 30)):
        below = [f"{team}/g{number}" for number in numbers]
        for group_id in (*below, *(f"{team}/g0{'/a/b/c/d'[:end]}" for end in (2, 4, 6, 8) if numbers[0] == 0)):
            now = story.clock.now()
            directory.create_group(group_id=group_id, name="G", description="", actor=story.olga, now=now)
            directory.grant_membership(email="alice@example.com", group_id=group_id, role=GroupRole.READER, actor=story.olga, now=now)
        story.clock.advance(300)
        assert follow(workers=1, clock=story.clock).is_ok
        found.append([all_pages(olga, page) for page in pages])
    for page, small, big in zip(pages, *found, strict=True):
        print(page, small, big)  # noqa: T201
        assert max(*small[0], *big[0]) <= MOST, page
    # Of 27 more groups: her in each; each group with her; her in each, and the account that each way leads to.
    assert [big[1] - small[1] for small, big in zip(*found, strict=True)] == [27, 54, 0, 54]
