"""What subscribers get, and that the schema and the page describe it."""

from __future__ import annotations

import json
import re
from typing import Any

import pytest
from jsonschema import Draft202012Validator, ValidationError

from accessportal.audit.actions import ACTIONS
from accessportal.audit.messages import envelope, group_id, message_of
from accessportal.audit.operations import publish_outbox
from accessportal.aws.sns import MOST_BYTES
from accessportal.conf import ROOT
from tests.audit.conftest import SCHEMA, TICK, Outbox, Topic, validate
from tests.fixtures_story import Story

ONE = "request#one"


def example(kind: str, data: dict[str, Any]) -> dict[str, Any]:
    return {
        "schema": 1,
        "id": "019cadf3-6d00-7000-8000-000000000000",
        "type": kind,
        "entity": "person#alice@example.com",
        "sequence": 3,
        "at": "2026-03-02T09:00:00.000+00:00",
        "actor": "olga@example.com",
        "subject": "alice@example.com",
        "scope": "/engineering",
        "data": data,
        "data_left_out": False,
    }


def test_the_schema_knows_every_action_with_its_fields_and_nothing_else() -> None:
    Draft202012Validator.check_schema(SCHEMA)
    described = {name: part for name, part in SCHEMA["$defs"].items() if not name.startswith("field.")}

    assert SCHEMA["properties"]["type"]["enum"] == list(ACTIONS)
    assert {kind: set(data["properties"]) for kind, data in described.items()} == {kind: set(spec.fields) for kind, spec in ACTIONS.items()}
    assert {data["additionalProperties"] for data in described.values()} == {False}
    assert {kind: data["title"] for kind, data in described.items()} == {kind: spec.title for kind, spec in ACTIONS.items()}
    assert {part["if"]["properties"]["type"]["const"] for part in SCHEMA["allOf"][1:]} == set(ACTIONS)


@pytest.mark.parametrize("kind", ACTIONS)
def test_the_schema_is_closed_for_every_type(kind: str) -> None:
    validate(example(kind, {}))
    with pytest.raises(ValidationError, match="password"):
        validate(example(kind, {"password": "secret"}))
    with pytest.raises(ValidationError, match="extra"):
        validate(example(kind, {}) | {"extra": 1})


def test_a_type_that_is_not_registered_is_no_event() -> None:
    with pytest.raises(ValidationError):
        validate(example("user.invented", {}))
    with pytest.raises(ValidationError):
        validate(example("user.granted", {"role": "owner"}))
    with pytest.raises(ValidationError):
        validate(example("user.granted", {"role": "admin"}) | {"data_left_out": True})


def test_the_page_names_every_type_and_its_example_is_an_event() -> None:
    page = (ROOT / "docs" / "events.md").read_text()
    (shown,) = re.findall(r"```json\n(.+?)```", page, re.DOTALL)

    named = set(re.findall(r"`((?:[a-z_]+)\.(?:[a-z_]+))`", page))
    assert set(ACTIONS) <= named
    validate(json.loads(shown))


def test_everything_that_a_story_tells_is_published_and_valid(story: Story, topic: Topic) -> None:
    first = story.ask()
    story.carry_out(first)
    story.clock.advance(10)
    extension = story.extend(first, 5400)
    story.end(story.now_of(first))
    waiting, other, third = story.ask_for_prod(), story.ask_for_prod(seconds=1800), story.ask_for_prod(seconds=900)
    story.approve(waiting)
    story.deny(other)
    story.cancel(third)
    story.tick()
    story.clock.advance(7200)
    story.tick()

    report = publish_outbox(send=topic.send, actor=TICK, clock=story.clock)

    bodies = topic.bodies()
    assert report.published == len(bodies)
    assert extension.request_id in {body["entity"].partition("#")[2] for body in bodies}
    for kind in ("request.submitted", "request.auto_approved", "request.approved", "request.denied", "request.cancelled"):
        assert kind in {body["type"] for body in bodies}
    for kind in ("request.granted", "request.revoked", "assignment.present", "assignment.absent", "rule.added", "rules.applied"):
        assert kind in {body["type"] for body in bodies}


def test_subscribers_filter_by_type_and_entity_and_keep_the_order_of_an_entity(outbox: Outbox, fifo: Topic) -> None:
    outbox.write(ONE, count=2)
    outbox.publish(fifo.send)

    first, second = fifo.deliveries()

    assert {name: value["StringValue"] for name, value in first["MessageAttributes"].items()} == {"type": "request.denied", "entity": ONE}
    assert first["Attributes"]["MessageGroupId"] == second["Attributes"]["MessageGroupId"] == ONE
    assert first["Attributes"]["MessageDeduplicationId"] == first["body"]["id"] == outbox.events(ONE)[0].event_id


def test_a_standard_topic_gets_no_words_of_order(outbox: Outbox, topic: Topic) -> None:
    outbox.write(ONE)
    outbox.publish(topic.send)

    (delivery,) = topic.deliveries()

    assert "MessageGroupId" not in delivery["Attributes"]


def test_the_envelope_is_the_event(outbox: Outbox) -> None:
    outbox.write(ONE, data={"reason": "Zürich \u0007 \U0001f511", "status": "DENIED"})
    (event,) = outbox.events(ONE)

    body = json.loads(message_of(event).body)

    assert body == envelope(event)
    assert body["at"] == "2026-03-02T09:00:00.000+00:00"
    assert body["data"]["reason"] == "Zürich \u0007 \U0001f511"
    assert message_of(event).body.isascii()


def test_an_event_too_long_for_the_topic_goes_without_its_data(outbox: Outbox, topic: Topic) -> None:
    outbox.write(ONE, data={"reason": "x" * 300_000, "status": "DENIED"})
    outbox.write(ONE)

    assert outbox.publish(topic.send).published == 2

    long, short = topic.bodies()
    assert (long["data"], long["data_left_out"], long["sequence"]) == ({}, True, 1)
    assert (short["data_left_out"], short["sequence"]) == (False, 2)
    outbox.check(ONE)


def test_the_limit_is_met_to_the_byte(outbox: Outbox) -> None:
    outbox.write(ONE, data={"reason": "", "status": "DENIED"})
    room = MOST_BYTES - message_of(outbox.events(ONE)[0]).size
    outbox.write("request#fits", data={"reason": "x" * (room - 2 * len("fits") + 2 * len("one")), "status": "DENIED"})
    outbox.write("request#more", data={"reason": "x" * (room - 2 * len("more") + 2 * len("one") + 1), "status": "DENIED"})

    fits, more = (message_of(outbox.events(entity)[0]) for entity in ("request#fits", "request#more"))

    assert fits.size == MOST_BYTES
    assert not json.loads(fits.body)["data_left_out"]
    assert json.loads(more.body)["data_left_out"]


@pytest.mark.parametrize("entity", ["rule#ops team", "group#/zürich", "person#" + "x" * 122, "rule#a\nb"])
def test_an_entity_that_sns_can_not_name_goes_by_its_digest(entity: str) -> None:
    assert re.fullmatch(r"sha256:[0-9a-f]{64}", group_id(entity))
    assert group_id(entity) != group_id(entity + "x")


@pytest.mark.parametrize("entity", ["group#/", "person#alice+o'neil@example.com", "request#7f1c", "person#" + "x" * 121])
def test_other_entities_go_by_their_name(entity: str) -> None:
    assert group_id(entity) == entity
