"""Requests of which any one attribute was spoilt: each is named wherever it is met, and hinders no other."""

from __future__ import annotations

import uuid
from collections import Counter
from collections.abc import Callable, Collection
from typing import Any

import boto3
import pytest

from accessportal.access_requests import queries
from accessportal.access_requests.models import RequestItem
from accessportal.access_requests.states import AccessRequest, Status
from accessportal.console.resource import Ask
from accessportal.console.resources.requests import Requests
from accessportal.kernel.errors import Unavailable
from accessportal.kernel.pages import Page
from accessportal.portal.requests.lent import Lent
from accessportal.portal.requests.rows import ended_rows, open_row
from accessportal.web.names import Names
from accessportal.web.presenting import mark_of
from tests.damage import Raw, damaged
from tests.fixtures_story import Story
from tests.fixtures_twin import REGION

LISTS: dict[str, Callable[..., Page[AccessRequest]]] = {
    "active": queries.list_active,
    "pending": queries.list_pending,
    "ending": queries.list_ending_soon,
    "stuck": queries.list_stuck,
    "undecidable": queries.list_undecidable,
    "waiting": queries.list_waiting_for,
    "revoked": lambda **given: queries.list_by_status(status=Status.REVOKED, **given),
    "subject": lambda **given: queries.list_by_subject(subject_id="alice@example.com", **given),
}


def spoil(request: AccessRequest) -> dict[str, str]:
    """Copies of the request, each spoilt in one way: ids and the name of the spoilt attribute."""
    client = boto3.client("dynamodb", region_name=REGION)
    whole = client.get_item(TableName="ActiveRequests", Key={"request_id": {"S": request.request_id}})["Item"]
    found: dict[str, str] = {}
    puts: list[Any] = []
    for name, item in damaged(RequestItem, whole):
        request_id = str(uuid.uuid4())
        puts.append({"PutRequest": {"Item": {**item, "request_id": {"S": request_id}}}})
        found[request_id] = name
    for first in range(0, len(puts), 25):
        client.batch_write_item(RequestItems={"ActiveRequests": puts[first : first + 25]})
    return found


def walk(fetch: Callable[..., Page[AccessRequest]], story: Story) -> tuple[dict[str, AccessRequest], set[str]]:
    """Everything on the list, and what it names."""
    items: dict[str, AccessRequest] = {}
    named, cursor = set[str](), None
    while True:
        page = fetch(actor=story.olga, now=story.clock.now(), cursor=cursor, limit=100)
        items |= {one.request_id: one for one in page.items}
        named |= {one.key for one in page.unreadable}
        if (cursor := page.next_cursor) is None:
            return items, named


def show(requests: Collection[AccessRequest], story: Story, book: queries.ApproverBook) -> None:
    """What the pages make of them."""
    now = story.clock.now()
    Requests().rows(tuple(requests), Ask(actor=story.olga, book=book))
    for request in requests:
        mark_of(request, now)
        if request.status.is_terminal:
            ended_rows([request], actor=story.olga, book=book)
        else:
            open_row(request, lent=Lent(), actor=story.olga, names=Names(book.directory), book=book)
        queries.asked(request=request)


def named_alone(story: Story, spoilt: Collection[str], book: queries.ApproverBook) -> set[str]:
    """Those whose own page says that they can't be read; each of the others is shown."""
    named, read = set(), []
    for request_id in spoilt:
        try:
            read.append(queries.get(request_id=request_id, actor=story.olga, now=story.clock.now()))
        except Unavailable as error:
            named |= {request_id} if (error.code, request_id in error.message) == ("item_unreadable", True) else set()
    show(read, story, book)
    return named


def base(story: Story, which: str) -> AccessRequest:
    if which == "pending":
        return story.approve(story.ask(account="payments-prod"))
    held = story.carry_out(story.ask_to_join() if which == "role" else story.ask())
    return story.carry_out(story.end(held)) if which == "revoked" else held


@pytest.mark.parametrize("which", ["granted", "role", "pending", "revoked"])
def test_every_list_names_what_it_can_not_read_and_has_the_rest(story: Story, which: str) -> None:
    healthy = base(story, which)
    spoilt = spoil(healthy)
    met: Counter[str] = Counter()
    book = queries.ApproverBook(now=story.clock.now())

    for name, fetch in LISTS.items():
        items, named = walk(fetch, story)
        assert named <= spoilt.keys(), name
        assert not named & items.keys(), name
        met.update(named)
        show(items.values(), story, book)
        if name == "subject":
            assert healthy.request_id in items

    alone = named_alone(story, spoilt, book)
    read = Counter(attribute for request_id, attribute in spoilt.items() if request_id not in alone)
    # What an item of this class must have can't be missing; most of what is of another type is found.
    must = {name for name, attribute in RequestItem.get_attributes().items() if not attribute.null} - {"request_id"}
    assert {spoilt[key] for key in met} >= must & set(spoilt.values()) - {"status"}
    assert all(count < 9 for name, count in read.items() if name not in ("approval", "target", "evidence", "receipts")), read


def test_the_tick_reports_each_and_carries_out_the_rest(story: Story) -> None:
    healthy = base(story, "granted")
    spoilt = spoil(healthy)
    story.clock.advance(3600)

    report = story.tick()

    assert story.now_of(healthy).status is Status.REVOKED
    assert {one.item for one in report.failures} <= spoilt.keys()
    assert len(report.failures) > 50


def test_the_pages_name_it_and_show_the_others(story: Story, client: Any, django_user_model: Any) -> None:
    held = story.carry_out(story.ask())
    item: Raw = {"request_id": {"S": "strange"}, "status": {"S": "ACTIVE"}, "expires_at": {"N": "1"}}
    item |= {"open_subject": {"S": "alice@example.com"}, "requested_by": {"S": "alice@example.com"}, "purge_at": {"N": "9999999999"}}
    boto3.client("dynamodb", region_name=REGION).put_item(TableName="ActiveRequests", Item=item)
    for name, address in (("olga", "/admin/requests/?pattern=active"), ("alice", "/")):
        client.force_login(django_user_model.objects.create_user(username=f"{name}@example.com"))
        page = client.get(address)
        assert page.status_code == 200
        assert "The item strange of the table ActiveRequests can&#x27;t be read" in page.content.decode()
        assert held.request_id in page.content.decode()
    client.force_login(django_user_model.objects.get(username="olga@example.com"))
    gone = client.get("/admin/requests/strange/")
    assert (gone.status_code, "The item strange of the table ActiveRequests" in gone.content.decode()) == (503, True)
