"""Items that the portal did not write: the tables are open to other programs, and to mistakes."""

from __future__ import annotations

import boto3
import pytest

from accessportal.access_requests import queries
from accessportal.access_requests.states import Status
from accessportal.kernel.errors import NotFound, Unavailable
from tests.fixtures_story import Story
from tests.fixtures_twin import REGION

STRANGE = "11111111-2222-4333-8444-555555555555"


def put_strange_item(status: str, **more: dict[str, str]) -> None:
    """An item with the attributes of the seed's indexes and none of ours."""
    item = {"request_id": {"S": STRANGE}, "status": {"S": status}, "expires_at": {"N": "1"}, **more}
    boto3.client("dynamodb", region_name=REGION).put_item(TableName="ActiveRequests", Item=item)


@pytest.mark.parametrize(
    ("status", "more"),
    [("ACTIVE", {}), ("PENDING", {}), ("ACTIVE", {"target": {"S": "x"}}), ("ODD", {"work": {"S": "REVOKE"}, "work_due_at": {"N": "1"}})],
)
def test_an_item_that_is_no_request_is_told_and_stops_no_other(story: Story, status: str, more: dict[str, dict[str, str]]) -> None:
    held = story.carry_out(story.ask(seconds=600))
    put_strange_item(status, **more)
    story.clock.advance(600)

    report = story.tick()

    assert story.now_of(held).status is Status.REVOKED
    assert [failure.item for failure in report.failures] == [STRANGE]


def test_a_list_with_such_an_item_names_it_and_has_the_others(story: Story) -> None:
    held = story.ask()
    put_strange_item("ACTIVE")

    page = queries.list_active(actor=story.olga, now=story.clock.now())

    assert [one.request_id for one in page.items] == [held.request_id]
    assert [one.key for one in page.unreadable] == [STRANGE]
    with pytest.raises(Unavailable, match=STRANGE):
        queries.get(request_id=STRANGE, actor=story.olga, now=story.clock.now())


@pytest.mark.parametrize("request_id", ["", "x" * 2049, "\udcff"])
def test_what_can_be_no_key_is_simply_not_there(story: Story, request_id: str) -> None:
    with pytest.raises(NotFound):
        queries.get(request_id=request_id, actor=story.olga, now=story.clock.now())
    assert queries.list_by_subject(subject_id=request_id, actor=story.olga, now=story.clock.now()).items == ()
