"""Publishing by the command and by the job, and what both say without a topic."""

from __future__ import annotations

from urllib.parse import urlencode

import pytest
from django.test import Client
from django.urls import reverse
from pydantic import ValidationError
from pytest_django.fixtures import Settings

from accessportal.audit.operations import publish_outbox
from accessportal.audit.queries import count_unpublished
from accessportal.aws.errors import Refused
from accessportal.aws.sns import Message
from accessportal.commands import upkeep as command
from accessportal.conf import Conf
from accessportal.identity.operations import ensure_demo_user
from accessportal.jobs import tasks
from accessportal.observe import heartbeats
from tests.audit.conftest import TICK, Topic
from tests.commands.conftest import run
from tests.fixtures_story import Story


def refuse_all(messages: list[Message]) -> list[Refused]:
    return [Refused("InvalidParameter", "no") for _ in messages]


def test_without_a_topic_the_command_and_the_job_say_that_events_are_kept(story: Story) -> None:
    story.ask()

    told = run("publish_events", "--as", "olga@example.com")
    assert told.code == 0
    assert "PORTAL_EVENTS_TOPIC_ARN is not set" in told.out
    assert run("publish_events", "--as", "olga@example.com", "--json").json["has_topic"] is False
    assert "PORTAL_EVENTS_TOPIC_ARN is not set" in tasks.publish_events()
    beat = heartbeats.last_beat("publish_events")
    assert beat is not None
    assert beat.detail["kept"] > 0


def test_the_command_publishes_up_to_its_limit(story: Story, topic: Topic, settings: Settings) -> None:
    settings.EVENTS_TOPIC_ARN = topic.arn
    story.ask()
    before = count_unpublished().count

    some = run("publish_events", "--as", "olga@example.com", "--limit", "3", "--json")
    assert (some.code, some.json["published"], some.json["is_finished"]) == (0, 3, False)
    rest = run("publish_events", "--as", "olga@example.com")
    assert rest.lines[-1] == f"{before - 3} published, 0 waiting."
    assert len(topic.bodies()) == before


@pytest.mark.parametrize(("email", "code"), [("mallory@example.com", 1), ("ana@example.com", 1), ("nobody@example.com", 1)])
def test_the_command_is_for_operators(story: Story, topic: Topic, settings: Settings, email: str, code: int) -> None:
    settings.EVENTS_TOPIC_ARN = topic.arn

    assert run("publish_events", "--as", email).code == code
    assert topic.bodies() == []


def test_a_limit_that_is_no_number_is_bad_usage(story: Story) -> None:
    assert run("publish_events", "--as", "olga@example.com", "--limit", "many").code == 2


def test_the_command_fails_when_something_was_refused(story: Story, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(command, "topic_sender", lambda _arn: refuse_all)

    told = run("publish_events", "--as", "olga@example.com")

    assert told.code == 1
    assert "could not be published" in told.problem
    assert "InvalidParameter: no" in told.out


def test_the_job_publishes_and_leaves_its_figures(story: Story, topic: Topic, settings: Settings) -> None:
    settings.EVENTS_TOPIC_ARN = topic.arn

    assert "failed 0" in tasks.publish_events()

    beat = heartbeats.last_beat("publish_events")
    assert beat is not None
    assert beat.is_ok
    assert beat.detail["published"] == len(topic.bodies()) > 0


def test_the_job_fails_at_its_end_when_events_wait(story: Story, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tasks, "topic_sender", lambda _arn: refuse_all)

    with pytest.raises(tasks.ItemsFailed, match="published 0"):
        tasks.publish_events()

    beat = heartbeats.last_beat("publish_events")
    assert beat is not None
    assert not beat.is_ok


def test_metrics_tell_what_waits_and_since_when(story: Story, topic: Topic, client: Client, settings: Settings) -> None:
    settings.METRICS_TOKEN = "a-token-for-tests"
    publish_outbox(send=topic.send, actor=TICK, clock=story.clock)
    story.ask_for_prod()
    story.clock.advance(120)

    told = client.get("/metrics", headers={"authorization": "Bearer a-token-for-tests"}).content.decode()

    assert "accessportal_events_topic_set 0.0" in told
    assert "accessportal_unpublished_events 1.0" in told
    assert "accessportal_unpublished_oldest_seconds 120.0" in told


@pytest.mark.parametrize("arn", ["", "arn:aws:sns:eu-central-1:123456789012:events", "arn:aws-cn:sns:cn-north-1:123456789012:events.fifo"])
def test_a_topic_is_set_by_its_arn(arn: str) -> None:
    assert Conf(events_topic_arn=arn).events_topic_arn == arn


@pytest.mark.parametrize("arn", ["events", "arn:aws:sqs:eu-central-1:123456789012:events", "arn:aws:sns:eu-central-1:1:events"])
def test_anything_else_is_refused_at_the_start(arn: str) -> None:
    with pytest.raises(ValidationError, match="events_topic_arn"):
        Conf(events_topic_arn=arn)


def test_the_admin_pages_say_whether_an_event_has_left(story: Story, topic: Topic, client: Client) -> None:
    client.force_login(ensure_demo_user(email="olga@example.com", name="Olga Olsen", password="a-password-for-tests"))
    asked = story.ask()
    address = f"{reverse('admin:console_audit')}?{urlencode({'pattern': 'entity', 'q': asked.entity})}"
    assert "<dt>Published</dt><dd>not yet</dd>" in client.get(address).content.decode()

    publish_outbox(send=topic.send, actor=TICK, clock=story.clock)

    assert "<dt>Published</dt><dd>yes</dd>" in client.get(address).content.decode()
