"""Runs that die after each of their writes, two at once, events that come late, a log that was restored or damaged: the same history."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta
from typing import Any
from unittest.mock import Mock

import boto3
import pytest

from accessportal.audit import store as audit_store
from accessportal.directory import operations as directory
from accessportal.directory.states import GroupRole, State
from accessportal.history import operations, policy, queries, store
from accessportal.history.models import HistoryItem
from accessportal.history.states import Answer, FollowReport, Held, Mark, Thing, ThingKind
from accessportal.kernel.errors import InvalidRequest, NoAnswer, NotAllowed, Unavailable
from accessportal.kernel.pages import Page, every
from accessportal.web.holdings import page_of
from tests.crashing import Killed, Process, living
from tests.fixtures_story import Story
from tests.fixtures_twin import REGION
from tests.history.comparing import rows

READS = frozenset({"GetItem", "BatchGetItem", "Query", "Scan"})
DAY = timedelta(days=1)
PAYMENTS = Thing(ThingKind.GROUP, "/engineering/payments")


def follow(story: Story) -> FollowReport:
    return operations.follow(workers=1, clock=story.clock)


def work(story: Story) -> None:
    """Something opens, changes and is over; Sam is in two groups when he is disabled."""
    request = story.ask()
    story.carry_out(request)
    directory.grant_membership(
        email="sam@example.com", group_id=PAYMENTS.name, role=GroupRole.READER, actor=story.olga, now=story.clock.now()
    )
    follow(story)
    story.carry_out(story.end(request))
    directory.set_person_state(email="sam@example.com", state=State.DISABLED, actor=story.olga, now=story.clock.now())
    story.clock.advance(300)


def test_killed_after_each_write(story: Story, monkeypatch: pytest.MonkeyPatch) -> None:
    # Of the two who had something in the groups: more than go into one transaction.
    monkeypatch.setattr(store, "_MOST_STEPS", 2)
    work(story)
    process, lives = Process(fatal=0, after=True), 0
    with living(process, monkeypatch, reads=READS):
        while True:
            process._fatal = len(process.names)
            try:
                report = follow(story)
            except Killed:
                process.reboot()
                lives += 1
                continue
            break
    assert lives > 5
    assert report.is_ok
    before = rows()
    assert operations.rebuild(workers=1, actor=story.olga, clock=story.clock).is_ok
    assert rows() == before


def test_two_at_once(story: Story, monkeypatch: pytest.MonkeyPatch) -> None:
    """Another run does all between the reading and the writing of each of this one's steps."""
    work(story)
    keep, raced = store.keep_mark, []

    def slow(generation: int, before: Mark, after: Mark) -> Mark:
        if before.entity not in raced:
            raced.append(before.entity)
            follow(story)
        return keep(generation, before, after)

    monkeypatch.setattr(store, "keep_mark", slow)
    assert follow(story).is_ok
    assert raced
    monkeypatch.undo()
    monkeypatch.setattr(policy, "PARTS", 1)
    before = rows()
    assert operations.rebuild(workers=1, actor=story.olga, clock=story.clock).is_ok
    assert rows() == before


def test_an_event_that_the_index_shows_late(story: Story, monkeypatch: pytest.MonkeyPatch) -> None:
    """It is met an hour, or three days, later."""
    follow(story)
    story.clock.advance(60)
    directory.grant_membership(
        email="sam@example.com", group_id=PAYMENTS.name, role=GroupRole.READER, actor=story.olga, now=story.clock.now()
    )
    shown = audit_store.events_of_shard_between
    story.clock.advance(600)
    with monkeypatch.context() as patch:
        hidden: Callable[..., Any] = lambda *given: (one for one in shown(*given) if one.entity != "person#sam@example.com")  # noqa: E731
        patch.setattr(audit_store, "events_of_shard_between", hidden)
        follow(story)
    follow(story)
    assert "sam@example.com" not in members(story)
    story.clock.advance(3_600)
    follow(story)
    assert "sam@example.com" in members(story)


def members(story: Story) -> set[str]:
    return {one.who for one in queries.who_had(thing=PAYMENTS, at=story.clock.now(), actor=story.ana).page.items}


def test_an_entity_without_an_answer_stops_the_run(story: Story, monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing is said to be known that was not read."""
    follow(story)
    known = queries.who_had(thing=PAYMENTS, at=story.clock.now(), actor=story.ana).known_until
    work_at = story.clock.now()
    story.clock.advance(60)
    directory.grant_membership(
        email="sam@example.com", group_id=PAYMENTS.name, role=GroupRole.READER, actor=story.olga, now=story.clock.now()
    )
    story.clock.advance(600)

    def silent(*_given: Any) -> Mark:
        raise NoAnswer("The database did not answer.", code="store_unavailable")

    with monkeypatch.context() as patch:
        patch.setattr(store, "get_mark", silent)
        report = follow(story)
    assert "did not answer" in report.stopped
    assert queries.who_had(thing=PAYMENTS, at=work_at, actor=story.ana).known_until == known
    assert follow(story).is_ok
    assert "sam@example.com" in members(story)


def test_a_damaged_event_is_passed_over_and_named(story: Story, monkeypatch: pytest.MonkeyPatch) -> None:
    follow(story)
    directory.grant_membership(
        email="sam@example.com", group_id=PAYMENTS.name, role=GroupRole.READER, actor=story.olga, now=story.clock.now()
    )
    sequence = audit_store.history("person#sam@example.com", limit=1).items[0].sequence
    boto3.client("dynamodb", region_name=REGION).update_item(
        TableName="AuditLog",
        Key={"entity": {"S": "person#sam@example.com"}, "sequence": {"N": str(sequence)}},
        UpdateExpression="SET #data = :data",
        ExpressionAttributeNames={"#data": "data"},
        ExpressionAttributeValues={":data": {"M": {}}},
    )
    story.clock.advance(300)
    report = follow(story)
    assert [(one.item, "makes no sense" in one.error) for one in report.failures] == [(f"person#sam@example.com, event {sequence}", True)]

    def told() -> tuple[str, ...]:
        return queries.who_had(thing=PAYMENTS, at=story.clock.now(), actor=story.ana).unfollowed

    assert (follow(story).is_ok, told()) == (True, ("person#sam@example.com",))
    # Made anew, it is passed over again.
    operations.rebuild(workers=1, actor=story.olga, clock=story.clock)
    assert told() == ("person#sam@example.com",)
    # Where there are too many to name each, it is said that there are others.
    monkeypatch.setattr(operations, "_MOST_UNFOLLOWED", 0)
    operations.rebuild(workers=1, actor=story.olga, clock=story.clock)
    assert told() == ("others",)


def test_a_log_that_was_restored(story: Story) -> None:
    """Other events with the numbers of those that were read: nothing is guessed, and made anew it is right."""
    follow(story)
    mark = store.get_mark(1, "person#sam@example.com")
    store.keep_mark(1, mark, mark.to(head="another"))
    directory.grant_membership(
        email="sam@example.com", group_id=PAYMENTS.name, role=GroupRole.READER, actor=story.olga, now=story.clock.now()
    )
    story.clock.advance(300)
    assert "rebuild_history" in follow(story).failures[0].error
    with pytest.raises(NotAllowed):
        operations.rebuild(workers=1, actor=story.ana, clock=story.clock)
    assert operations.rebuild(workers=1, actor=story.olga, clock=story.clock).is_ok
    assert "sam@example.com" in members(story)
    places = {item.place.partition("|")[0] for item in HistoryItem.scan()}
    assert places == {"2", "progress"}


@pytest.mark.parametrize("error", [RuntimeError("what nobody thought of"), Unavailable("An item can't be read.", code="item_unreadable")])
def test_an_answer_is_not_whole_while_somebody_was_not_followed(story: Story, monkeypatch: pytest.MonkeyPatch, error: Exception) -> None:
    """Whoever fails stops nobody else, is named in every answer, and is tried again by every run."""
    follow(story)
    for email in ("sam@example.com", "mallory@example.com"):
        directory.grant_membership(email=email, group_id=PAYMENTS.name, role=GroupRole.READER, actor=story.olga, now=story.clock.now())
    story.clock.advance(300)
    get_mark = store.get_mark

    def failing(generation: int, entity: str) -> Mark:
        if entity == "person#sam@example.com":
            raise error
        return get_mark(generation, entity)

    with monkeypatch.context() as patch:
        patch.setattr(store, "get_mark", failing)
        for _ in range(2):
            assert [one.item for one in follow(story).failures] == ["person#sam@example.com"]
            story.clock.advance(300)
            answer = queries.who_had(thing=PAYMENTS, at=story.clock.now(), actor=story.ana)
            assert answer.unfollowed == ("person#sam@example.com",)
            assert "mallory@example.com" in {one.who for one in answer.page.items}
    own = queries.what_had(email="bob@example.com", begin=story.clock.now() - DAY, end=story.clock.now(), actor=story.bob)
    assert own.unfollowed == ("a person, group or thing",)
    assert page_of(own).remarks[1] == "Incomplete: events of a person, group or thing could not be read."
    assert follow(story).is_ok
    assert queries.who_had(thing=PAYMENTS, at=story.clock.now(), actor=story.ana).unfollowed == ()
    assert {"sam@example.com", "mallory@example.com"} <= members(story)


def test_a_page_with_the_last_of_an_answer_has_no_next_one(story: Story) -> None:
    """Also where places in which nothing lies are still to be read."""
    story.carry_out(story.ask())
    follow(story)
    begin = story.clock.now() - DAY

    def page(limit: int) -> Page[Held]:
        return queries.what_had(email="alice@example.com", begin=begin, end=begin + 2 * DAY, limit=limit, actor=story.alice).page

    whole = page(50).items
    assert len(whole) > 1
    for limit in range(1, len(whole)):
        assert page(limit).next_cursor is not None
    assert page(len(whole)).next_cursor is None


def test_many_that_can_not_be_followed_stop_the_run(story: Story, monkeypatch: pytest.MonkeyPatch) -> None:
    follow(story)
    known = queries.who_had(thing=PAYMENTS, at=story.clock.now(), actor=story.ana).known_until
    monkeypatch.setattr(operations, "_MOST_UNFOLLOWED", 1)
    for email in ("sam@example.com", "mallory@example.com"):
        directory.grant_membership(email=email, group_id=PAYMENTS.name, role=GroupRole.READER, actor=story.olga, now=story.clock.now())
    story.clock.advance(300)
    with monkeypatch.context() as patch:
        patch.setattr(store, "get_mark", Mock(side_effect=RuntimeError("broken")))
        assert "more than 1 entities" in follow(story).stopped
    answer = queries.who_had(thing=PAYMENTS, at=story.clock.now(), actor=story.ana)
    assert (answer.known_until, answer.unfollowed) == (known, ())
    assert follow(story).is_ok


def test_pages_of_one_answer_agree(story: Story) -> None:
    """The next page goes on where the last one stopped, and knows what the first one knew, whatever happened between them."""
    story.carry_out(story.ask())
    follow(story)
    begin = story.clock.now() - DAY
    end = begin + 2 * DAY

    def page(cursor: str | None) -> Answer:
        return queries.what_had(email="alice@example.com", begin=begin, end=end, cursor=cursor, limit=1, actor=story.alice)

    first = page(None)
    whole = [one.interval.key for one in every(lambda cursor: page(cursor).page)]
    assert len(whole) > 1
    # Now she is in more groups: there are more ways, before those that are still to be read.
    for group in ("/portal/auditors", "/engineering"):
        directory.grant_membership(
            email="alice@example.com", group_id=group, role=GroupRole.READER, actor=story.olga, now=story.clock.now()
        )
    story.clock.advance(600)
    follow(story)
    found, answer = [*first.page.items], first
    while answer.page.next_cursor is not None:
        answer = page(answer.page.next_cursor)
        assert answer.known_until == first.known_until
        found += answer.page.items
    keys = [one.interval.key for one in found]
    assert set(whole) <= set(keys)
    assert len(keys) == len(set(keys))
    assert page(None).known_until > first.known_until
    assert operations.rebuild(workers=1, actor=story.olga, clock=story.clock).is_ok
    with pytest.raises(InvalidRequest, match="Begin with the first page"):
        page(first.page.next_cursor)
