"""What one asked for is found again, and what waits for one is counted, however much else there is."""

from __future__ import annotations

import uuid
from typing import Any

import boto3
import pytest

from accessportal.access_requests import queries
from accessportal.access_requests.states import AccessRequest, Search, Status
from accessportal.directory import operations as directory
from accessportal.directory.states import State
from accessportal.kernel.actors import Role, person, system
from accessportal.kernel.counts import Count
from accessportal.rules import operations as rules
from tests.fixtures_story import RULES, Story
from tests.fixtures_twin import REGION

SETUP = system("setup")


def copy(request: AccessRequest, *, times: int) -> None:
    """As many more like it, each with a nearer deadline."""
    table = boto3.resource("dynamodb", region_name=REGION).Table("ActiveRequests")
    item = table.get_item(Key={"request_id": request.request_id})["Item"]
    ends_at = int(request.expires_at.timestamp()) - 1000
    with table.batch_writer() as batch:
        for number in range(times):
            batch.put_item({**item, "request_id": str(uuid.uuid4()), "expires_at": ends_at - number})


def ask_for_team(story: Story) -> AccessRequest:
    return story.ask(account="payments-prod", permission_set="ReadOnlyAccess", ticket="CHG-1", subject_id="/engineering/payments")


def test_who_asked_for_a_group_finds_it_when_it_is_denied_or_over(story: Story) -> None:
    denied = story.deny(ask_for_team(story))
    over = story.carry_out(story.approve(ask_for_team(story)))
    story.carry_out(story.end(over))

    mine = {one.request_id for one in queries.list_mine(actor=story.alice).items}
    ended = [one.request_id for one in queries.list_ended(requested_by=story.alice.name).items]

    assert mine == set(ended) == {denied.request_id, over.request_id}
    assert queries.list_ended(requested_by=story.bob.name).items == ()


def test_what_is_over_is_found_behind_many_that_are_open(story: Story) -> None:
    over = story.cancel(story.ask_for_prod())
    waiting = story.ask_for_prod()
    copy(waiting, times=20)

    assert [one.request_id for one in queries.list_ended(requested_by=story.alice.name, limit=15).items] == [over.request_id]
    assert len(queries.list_mine(actor=story.alice).items) == 22


def test_the_count_is_right_behind_many_that_wait_for_others(story: Story) -> None:
    copy(story.ask_to_join(role="contributor"), times=210)
    asked = story.ask_for_prod()
    now = story.clock.now()

    assert queries.count_waiting_for(actor=story.bob, now=now) == Count(1)
    assert queries.count_waiting_for(actor=story.gina, now=now).words == "25+"
    assert [one.request_id for one in queries.list_waiting_for(actor=story.bob, now=now).items] == [asked.request_id]


def test_a_look_that_found_none_before_its_end_says_so(story: Story) -> None:
    copy(story.ask_to_join(role="contributor"), times=810)

    operator = person("mallory@example.com", roles=frozenset({Role.OPERATOR}))
    assert queries.count_waiting_for(actor=operator, now=story.clock.now()).words == "?"
    assert [Count(0).words, Count(3).words, Count(25, is_more=True).words] == ["", "3", "25+"]


def test_the_stuck_are_counted_to_their_end(story: Story) -> None:
    asked = story.ask()
    copy(asked, times=30)
    story.clock.advance(120)

    assert queries.count_stuck(actor=story.olga, now=story.clock.now()) == Count(31)


@pytest.mark.parametrize(("quorum", "given"), [(2, 1), (3, 1)])
def test_approvals_are_told_as_the_rule_counts_them_now(story: Story, quorum: int, given: int) -> None:
    asked = story.ask(account="payments-prod")
    approved = story.approve(asked)
    rules.apply_rules(text=RULES.replace("quorum: 2", f"quorum: {quorum}"), actor=SETUP, now=story.clock.now())

    tally = queries.ApproverBook(now=story.clock.now()).tally(approved)

    assert (tally.given, tally.quorum, tally.missing) == (given, quorum, quorum - given)
    directory.set_person_state(email="bob@example.com", state=State.DISABLED, actor=SETUP, now=story.clock.now())
    assert queries.ApproverBook(now=story.clock.now()).tally(approved).given == 0


def test_what_one_asked_for_is_narrowed_by_kind_state_and_time(story: Story) -> None:
    begun = story.clock.now()
    denied, joins = story.deny(story.ask_for_prod()), story.ask_to_join()
    copy(story.ask_for_prod(), times=60)
    story.clock.advance(3600)
    late = story.deny(story.ask_for_prod())

    def found(kind: str = "", limit: int = 5, **search: Any) -> list[str]:
        return [one.request_id for one in queries.list_mine(actor=story.alice, kind=kind, search=Search(**search), limit=limit).items]

    assert found("group") == [joins.request_id]
    assert found(status=Status.DENIED) == [late.request_id, denied.request_id]
    assert found(status=Status.DENIED, until=late.requested_at) == [denied.request_id]
    assert found(status=Status.DENIED, since=late.requested_at) == [late.request_id]
    assert found("group", status=Status.DENIED) == []
    assert len(found(until=late.requested_at, since=begun, limit=100)) == 63
    assert queries.list_mine(actor=story.bob, search=Search(status=Status.DENIED)).items == ()
