"""The outbox: everything leaves at least once, an entity's events in order, whatever fails in between."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import boto3
import pytest
from botocore.exceptions import ReadTimeoutError

from accessportal.audit import queries, store
from accessportal.audit.operations import publish_outbox
from accessportal.audit.states import AuditEvent, PublishReport, Send
from accessportal.aws.errors import Gone, OutsideError, Refused, Throttled, Transient
from accessportal.aws.sns import Message
from accessportal.kernel.actors import Role, person
from accessportal.kernel.errors import NotAllowed, Unavailable
from accessportal.kernel.pages import Page
from tests.audit.conftest import Outbox, Topic
from tests.conftest import START, FakeClock
from tests.fixtures_twin import REGION, when

ONE, OTHER = "request#one", "request#other"


def refusing(topic: Topic, *event_ids: str, error: OutsideError | None = None) -> Send:
    """The topic takes all but these."""

    def send(messages: Sequence[Message]) -> list[OutsideError | None]:
        taken = [message for message in messages if message.deduplication_id not in event_ids]
        if taken:
            topic.send(taken)
        return [None if message in taken else error or Refused("InvalidParameter", "no") for message in messages]

    return send


def test_everything_leaves_once_and_in_order(outbox: Outbox, fifo: Topic) -> None:
    outbox.write(ONE, count=30)
    outbox.write(OTHER, count=12)

    report = outbox.publish(fifo.send)

    assert (report.published, report.repeated, report.failures, report.is_finished) == (42, 0, (), True)
    bodies = fifo.bodies()
    assert [body["sequence"] for body in bodies if body["entity"] == ONE] == list(range(1, 31))
    assert [body["sequence"] for body in bodies if body["entity"] == OTHER] == list(range(1, 13))
    assert outbox.publish(fifo.send).published == 0
    assert fifo.bodies() == []
    outbox.check(ONE)


def test_without_a_topic_everything_is_kept(outbox: Outbox, topic: Topic) -> None:
    outbox.write(ONE, count=3)

    report = outbox.publish(None)

    assert not report.has_topic
    assert queries.count_unpublished().count == 3
    assert outbox.publish(topic.send).published == 3


def test_a_shard_that_the_store_does_not_answer_for_stops_no_other(outbox: Outbox, topic: Topic) -> None:
    for number in range(40):
        outbox.write(f"request#{number}")
    lost: list[str] = []

    def lose(parameters: dict[str, Any]) -> None:
        if not lost and parameters.get("IndexName"):
            lost.append(str(parameters))
            raise ReadTimeoutError(endpoint_url="x")

    with when("Query", lose):
        report = outbox.publish(topic.send)

    assert ["ReadTimeoutError" in failure.error for failure in report.failures] == [True]
    assert (report.is_finished, 0 < report.published < 40) == (False, True)
    assert outbox.publish(topic.send).published == 40 - report.published


def test_only_operators_and_the_portal_itself_publish(outbox: Outbox, topic: Topic, clock: FakeClock) -> None:
    outbox.write(ONE)
    for stranger in (person("mallory@example.com"), person("ana@example.com", roles=frozenset({Role.AUDITOR}))):
        with pytest.raises(NotAllowed, match="Only operators"):
            publish_outbox(send=topic.send, actor=stranger, clock=clock)

    olga = person("olga@example.com", roles=frozenset({Role.OPERATOR}))
    assert publish_outbox(send=topic.send, actor=olga, clock=clock).published == 1


def test_a_refused_event_stops_its_own_entity_alone(outbox: Outbox, topic: Topic) -> None:
    outbox.write(ONE, count=3)
    outbox.write(OTHER, count=3)
    second = outbox.events(ONE)[1]

    report = outbox.publish(refusing(topic, second.event_id))

    (failure,) = report.failures
    assert (failure.item, report.is_ok) == (f"{ONE}, event 2", False)
    assert "InvalidParameter: no" in failure.error
    assert (outbox.published(ONE), outbox.published(OTHER)) == ([1], [1, 2, 3])

    assert outbox.publish(topic.send).published == 2
    assert topic.sequences(ONE) == [1, 2, 3]
    outbox.check(ONE)


def test_an_index_that_shows_a_later_event_first_does_not_break_the_order(
    outbox: Outbox, topic: Topic, monkeypatch: pytest.MonkeyPatch
) -> None:
    outbox.write(ONE, count=60)
    outbox.publish(topic.send, limit=5)
    index_page = store.unpublished_page

    def lagging(shard: str, *, cursor: str | None, limit: int) -> Page[AuditEvent]:
        """Knows nothing of what came before 58, and still holds 2."""
        page = index_page(shard, cursor=cursor, limit=limit)
        return Page(items=tuple(event for event in page.items if event.sequence >= 58), next_cursor=page.next_cursor)

    monkeypatch.setattr(store, "unpublished_page", lagging)
    outbox.publish(topic.send)

    assert topic.sequences(ONE) == list(range(1, 61))
    outbox.check(ONE)


def test_an_index_that_still_shows_what_is_published_costs_nothing(outbox: Outbox, topic: Topic, monkeypatch: pytest.MonkeyPatch) -> None:
    outbox.write(ONE, count=3)
    stale = outbox.events(ONE)
    outbox.publish(topic.send)
    monkeypatch.setattr(store, "unpublished_page", lambda shard, *, cursor, limit: Page(items=tuple(stale)))

    report = outbox.publish(topic.send)

    assert (report.published, report.repeated) == (0, 0)
    assert topic.sequences(ONE) == [1, 2, 3]


def test_a_crash_between_publishing_and_marking_repeats_the_event_under_its_id(
    outbox: Outbox, topic: Topic, monkeypatch: pytest.MonkeyPatch
) -> None:
    outbox.write(ONE, count=2)

    def crash(_event: AuditEvent) -> bool:
        raise Unavailable("The database did not answer.", code="store_unavailable")

    with monkeypatch.context() as patched:
        patched.setattr(store, "mark_published", crash)
        with pytest.raises(Unavailable):
            outbox.publish(topic.send)
    assert outbox.published(ONE) == []

    outbox.publish(topic.send)

    bodies = topic.bodies()
    assert [body["sequence"] for body in bodies] == [1, 1, 2]
    assert bodies[0]["id"] == bodies[1]["id"]
    outbox.check(ONE)


def test_two_publishers_at_once_repeat_at_most_and_keep_the_order(outbox: Outbox, topic: Topic, clock: FakeClock) -> None:
    outbox.write(ONE, count=6)
    outbox.write(OTHER, count=2)
    reports: list[PublishReport] = []

    def overtaken(messages: Sequence[Message]) -> Sequence[OutsideError | None]:
        """While the first publisher sends its first batch, its lease runs out and a second one does everything."""
        answer = topic.send(messages)
        if not reports:
            clock.advance(90)
            reports.append(outbox.publish(topic.send))
        return answer

    first = outbox.publish(overtaken, limit_seconds=600)

    (second,) = reports
    assert second.published == 8
    assert first.repeated >= 1
    assert first.published == 0
    firsts: list[tuple[str, int]] = []
    for body in topic.bodies():
        if (key := (body["entity"], body["sequence"])) not in firsts:
            firsts.append(key)
    assert [sequence for entity, sequence in firsts if entity == ONE] == [1, 2, 3, 4, 5, 6]
    outbox.check(ONE)
    outbox.check(OTHER)


def test_a_shard_that_somebody_works_on_is_left_to_them(outbox: Outbox, topic: Topic, clock: FakeClock) -> None:
    outbox.write(ONE, count=2)
    others = []

    def send(messages: Sequence[Message]) -> Sequence[OutsideError | None]:
        others.append(outbox.publish(topic.send))
        return topic.send(messages)

    outbox.publish(send)

    assert [(other.published, other.left_to_others, other.is_finished) for other in others] == [(0, 1, False)] * 2
    assert topic.sequences(ONE) == [1, 2]


@pytest.mark.parametrize("error", [Throttled("Throttled", "slower"), Transient("ReadTimeoutError", "no answer")])
def test_a_throttled_or_lost_call_is_tried_again(outbox: Outbox, topic: Topic, clock: FakeClock, error: OutsideError) -> None:
    outbox.write(ONE, count=2)
    left = [error, error]

    def send(messages: Sequence[Message]) -> Sequence[OutsideError | None]:
        if left:
            raise left.pop()
        return topic.send(messages)

    report = outbox.publish(send)

    assert (report.published, report.stopped) == (2, "")
    assert clock.slept_seconds == 4


def test_a_lost_answer_repeats_the_event_under_its_id(outbox: Outbox, topic: Topic) -> None:
    outbox.write(ONE, count=2)
    lost = [1]

    def send(messages: Sequence[Message]) -> Sequence[OutsideError | None]:
        answer = topic.send(messages)
        if lost:
            lost.pop()
            raise Transient("ConnectionClosedError", "the answer was lost")
        return answer

    outbox.publish(send)

    bodies = topic.bodies()
    assert [body["sequence"] for body in bodies] == [1, 1, 2]
    assert len({body["id"] for body in bodies}) == 2


@pytest.mark.parametrize(
    ("error", "calls"),
    [(Transient("ServiceUnavailable", "down"), 3), (Gone("NotFound", "no such topic"), 1), (Refused("AuthorizationError", "no"), 1)],
)
def test_an_unreachable_topic_ends_the_run_and_loses_nothing(outbox: Outbox, topic: Topic, error: OutsideError, calls: int) -> None:
    outbox.write(ONE)
    outbox.write(OTHER)
    made = []

    def send(messages: Sequence[Message]) -> Sequence[OutsideError | None]:
        made.append(len(messages))
        raise error

    report = outbox.publish(send)

    assert (report.stopped, report.failures, report.is_finished, report.is_ok) == (str(error), (), False, False)
    assert len(made) == calls
    assert outbox.publish(topic.send).published == 2


def test_a_part_of_a_batch_that_fails_is_not_marked(outbox: Outbox, topic: Topic) -> None:
    entities = [f"request#{number}" for number in range(12)]
    for entity in entities:
        outbox.write(entity, count=2)
    firsts = {outbox.events(entity)[0].event_id for entity in entities[:5]}

    report = outbox.publish(refusing(topic, *firsts, error=Transient("InternalError", "try again")))

    assert {failure.item for failure in report.failures} == {f"{entity}, event 1" for entity in entities[:5]}
    assert report.published == 14
    assert outbox.publish(topic.send).published == 10
    for entity in entities:
        outbox.check(entity)


def test_limit_and_time_end_a_run_and_the_next_one_goes_on(outbox: Outbox, topic: Topic, clock: FakeClock) -> None:
    for number in range(25):
        outbox.write(f"request#{number}")

    assert outbox.publish(topic.send, limit=7).published == 7

    def slow(messages: Sequence[Message]) -> Sequence[OutsideError | None]:
        clock.advance(40)
        return topic.send(messages)

    timed = outbox.publish(slow, limit_seconds=50)
    assert 0 < timed.published < 18
    assert not timed.is_finished
    clock.advance(120)
    assert outbox.publish(topic.send).is_finished
    assert len(topic.bodies()) == 25


def test_more_than_a_page_of_failures_does_not_starve_the_others(outbox: Outbox, topic: Topic) -> None:
    for number in range(9):
        outbox.write(f"request#bad{number}", count=60)
    bad = {event.event_id for number in range(9) for event in outbox.events(f"request#bad{number}")}
    for number in range(8):
        outbox.write(f"request#good{number}")

    report = outbox.publish(refusing(topic, *bad))

    assert len(report.failures) == 9
    assert report.published == 8


def test_a_changed_event_is_not_published(outbox: Outbox, topic: Topic) -> None:
    outbox.write(ONE, count=2)
    outbox.write(OTHER)
    tamper(ONE, 1, "SET #d.reason = :v", {"#d": "data"}, {":v": {"S": "Yes"}})

    report = outbox.publish(topic.send)

    assert [failure.item for failure in report.failures] == [f"{ONE}, event 1"]
    assert "was changed after it was written" in report.failures[0].error
    assert [body["entity"] for body in topic.bodies()] == [OTHER]


def test_an_event_that_can_not_be_read_is_reported(outbox: Outbox, topic: Topic) -> None:
    outbox.write(ONE, count=2)
    tamper(ONE, 1, "SET #d = :v", {"#d": "data"}, {":v": {"S": "no map"}})

    report = outbox.publish(topic.send)

    assert [failure.item for failure in report.failures] == [f"{ONE}, event 1"]
    assert topic.bodies() == []


def tamper(entity: str, sequence: int, update: str, names: dict[str, str], values: dict[str, dict[str, str]]) -> None:
    boto3.client("dynamodb", region_name=REGION).update_item(
        TableName="AuditLog",
        Key={"entity": {"S": entity}, "sequence": {"N": str(sequence)}},
        UpdateExpression=update,
        ExpressionAttributeNames=names,
        ExpressionAttributeValues=values,
    )


def test_marking_changes_nothing_but_the_outbox(outbox: Outbox, topic: Topic) -> None:
    outbox.write(ONE)
    (before,) = outbox.events(ONE)
    assert not before.is_published

    outbox.publish(topic.send)

    (after,) = outbox.events(ONE)
    assert after.is_published
    assert (after.hash, after.data, after.at) == (before.hash, before.data, before.at)
    assert not store.mark_published(after)
    outbox.check(ONE)


def test_the_count_stops_at_its_bound_and_knows_the_oldest(outbox: Outbox, clock: FakeClock) -> None:
    assert queries.count_unpublished().oldest_at is None
    outbox.write(ONE)
    clock.advance(60)
    for number in range(30):
        outbox.write(f"request#{number}")

    waiting = queries.count_unpublished()
    assert (waiting.count, waiting.is_more, waiting.oldest_at) == (31, False, START)
    bounded = queries.count_unpublished(counted_to=8)
    assert bounded.is_more
    assert bounded.count <= 8
