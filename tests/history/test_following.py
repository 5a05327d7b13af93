"""The history of stories: who had what, by which request, decided by whom, proved how."""

from __future__ import annotations

from datetime import datetime, timedelta

import pytest

from accessportal.history import operations, queries
from accessportal.history.states import Answer, NotMadeYet, Thing, ThingKind
from accessportal.kernel.errors import InvalidRequest, NotAllowed
from tests.fixtures_story import Story

DAY = timedelta(days=1)


def follow(story: Story) -> None:
    report = operations.follow(workers=1, clock=story.clock)
    assert report.is_ok, report


def account(story: Story, name: str = "payments-dev") -> Thing:
    return Thing(ThingKind.ACCOUNT, story.twin.accounts[name])


def who_had(story: Story, thing: Thing, at: datetime, right: str = "") -> Answer:
    answer = queries.who_had(thing=thing, at=at, right=right, actor=story.ana)
    assert answer.page.next_cursor is None
    return answer


def names(answer: Answer) -> list[str]:
    return [held.who for held in answer.page.items]


def test_an_account(story: Story) -> None:
    """From the call that made it to the proof that it is gone, with rule and decision."""
    asked_at = story.clock.now()
    request = story.approve(story.ask_for_prod())
    story.carry_out(request)
    present_at = story.clock.now()
    follow(story)
    (held,) = who_had(story, account(story, "payments-prod"), present_at).page.items
    assert (held.who, held.interval.right, held.interval.rule) == ("alice@example.com", "ReadOnlyAccess", "prod-readonly")
    assert (held.interval.asked_by, held.interval.decided_by) == ("alice@example.com", ("bob@example.com",))
    assert (held.interval.request_id, held.interval.until) == (request.request_id, request.expires_at)
    assert held.interval.from_at == asked_at
    assert (held.over_at, held.interval.ended_at) == (None, None)
    story.clock.advance(600)
    ended_at = story.clock.now()
    story.carry_out(story.end(request))
    follow(story)
    (gone,) = who_had(story, account(story, "payments-prod"), present_at).page.items
    assert (gone.interval.ended_at, gone.interval.ended_by) == (ended_at, "alice@example.com")
    assert gone.interval.gone_how.startswith("Proved absent (job ")
    assert gone.interval.gone_at is not None
    assert ended_at < gone.interval.gone_at <= story.clock.now()
    assert names(who_had(story, account(story, "payments-prod"), gone.interval.gone_at)) == []
    assert names(who_had(story, account(story, "payments-prod"), ended_at, right="PowerUserAccess")) == []


def test_a_group_had_it(story: Story) -> None:
    """A group is followed by whoever was in it then, also by a group below it, with the way."""
    story.carry_out(story.ask(subject_id="/engineering/payments"))
    story.carry_out(story.ask_to_join("/engineering/payments", actor=story.gina))
    follow(story)
    answer = who_had(story, account(story), story.clock.now())
    assert names(answer) == ["/engineering/payments", "alice@example.com", "gina@example.com"]
    alice = answer.page.items[1]
    assert [(one.thing.name, one.right) for one in alice.path] == [("/engineering/payments", "contributor")]
    engineering = who_had(story, Thing(ThingKind.GROUP, "/engineering"), story.clock.now())
    ways = {(held.who, held.interval.thing.name, held.interval.right) for held in engineering.page.items}
    assert ways == {
        ("/engineering/payments", "/engineering", ""),
        ("alice@example.com", "/engineering", ""),
        ("gina@example.com", "/engineering", ""),
        ("gina@example.com", "/engineering", "admin"),
        ("olga@example.com", "/", "admin"),
    }
    now = story.clock.now()
    own = queries.what_had(email="Alice@example.com", begin=now - DAY, end=now, actor=story.alice).page.items
    assert {(held.interval.thing.kind.value, held.interval.who, len(held.path)) for held in own} == {
        ("group", "alice@example.com", 0),
        ("account", "/engineering/payments", 1),
    }


def test_rights_and_bad_input(story: Story) -> None:
    now = story.clock.now()
    with pytest.raises(NotMadeYet, match="0 of 1 parts"):
        who_had(story, account(story), now)
    follow(story)
    for actor in (story.alice, story.mallory, story.gina):
        with pytest.raises(NotAllowed):
            queries.who_had(thing=account(story), at=now, actor=actor)
        with pytest.raises(NotAllowed):
            queries.what_had(email="bob@example.com", begin=now - DAY, end=now, actor=actor)
    assert queries.what_had(email="bob@example.com", begin=now - DAY, end=now, actor=story.bob).known_until < now
    assert queries.what_had(email="bob@example.com", begin=now - DAY, end=now, actor=story.olga).known_until < now
    with pytest.raises(InvalidRequest):
        queries.what_had(email="bob@example.com", begin=now, end=now, actor=story.bob)
    with pytest.raises(InvalidRequest):
        queries.what_had(email="bob@example.com", begin=now - 400 * DAY, end=now, actor=story.bob)
