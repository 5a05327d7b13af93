"""A topic in moto with a queue behind it, and short words for writing chains and publishing them."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import boto3
import pytest
from jsonschema import Draft202012Validator

from accessportal.audit import queries
from accessportal.audit.operations import prepare_event, publish_outbox, topic_sender
from accessportal.audit.states import AuditEvent, Draft, PublishReport, Send
from accessportal.conf import ROOT
from accessportal.kernel.actors import system
from accessportal.kernel.pages import every
from accessportal.store.transactions import transact
from tests.conftest import FakeClock
from tests.fixtures_twin import REGION

if TYPE_CHECKING:
    from mypy_boto3_sns import SNSClient
    from mypy_boto3_sqs import SQSClient

TICK = system("publish_events")
SCHEMA: dict[str, Any] = json.loads((ROOT / "docs" / "events.schema.json").read_text())
validate = Draft202012Validator(SCHEMA, format_checker=Draft202012Validator.FORMAT_CHECKER).validate


@dataclass
class Topic:
    """``send`` is the portal's own way to it; ``deliveries`` empties the queue that listens."""

    arn: str
    send: Send
    _queue_url: str
    _sqs: SQSClient

    def deliveries(self) -> list[dict[str, Any]]:
        """What a subscriber got since the last look: body, attributes and the order's own words, in the order of arrival.

        Each is checked against the published schema.
        """
        found: list[dict[str, Any]] = []
        while True:
            answer = self._sqs.receive_message(
                QueueUrl=self._queue_url, MaxNumberOfMessages=10, AttributeNames=["All"], MessageAttributeNames=["All"]
            )
            for message in answer.get("Messages", []):
                body = json.loads(message["Body"])
                validate(body)
                found.append({"body": body, **message})
                self._sqs.delete_message(QueueUrl=self._queue_url, ReceiptHandle=message["ReceiptHandle"])
            if not answer.get("Messages"):
                return found

    def bodies(self) -> list[dict[str, Any]]:
        return [delivery["body"] for delivery in self.deliveries()]

    def sequences(self, entity: str) -> list[int]:
        return [body["sequence"] for body in self.bodies() if body["entity"] == entity]


@dataclass
class Outbox:
    """Chains of events, written as every room writes them, and one run of the publisher after the other."""

    clock: FakeClock
    _ends: dict[str, tuple[int, str]] = field(default_factory=dict)

    def write(self, entity: str, *, count: int = 1, data: dict[str, Any] | None = None) -> None:
        for _ in range(count):
            sequence, head = self._ends.get(entity, (0, ""))
            draft = Draft("request.denied", "alice@example.com", data or {"reason": f"No {sequence + 1}", "status": "DENIED"})
            event = prepare_event(draft, entity=entity, sequence=sequence + 1, prev_hash=head, actor=system("test"), now=self.clock.now())
            transact([event.step])
            self._ends[entity] = (sequence + 1, event.head)

    def publish(self, send: Send | None, *, limit: int | None = None, limit_seconds: float = 50.0) -> PublishReport:
        return publish_outbox(send=send, limit=limit, limit_seconds=limit_seconds, actor=TICK, clock=self.clock)

    def events(self, entity: str) -> list[AuditEvent]:
        return list(every(lambda cursor: queries.history(entity, cursor=cursor, newest_first=False)))

    def published(self, entity: str) -> list[int]:
        return [event.sequence for event in self.events(entity) if event.is_published]

    def check(self, entity: str) -> None:
        """The chain is whole, and what was published of it is its beginning."""
        sequence, head = self._ends[entity]
        assert queries.check_head(entity, version=sequence, audit_head=head) == []
        done = self.published(entity)
        assert done == list(range(1, len(done) + 1))


@pytest.fixture
def outbox(tables: None, clock: FakeClock) -> Outbox:
    return Outbox(clock)


@pytest.fixture
def fifo(tables: None) -> Topic:
    return _topic("events.fifo", {"FifoTopic": "true"}, {"FifoQueue": "true"})


@pytest.fixture
def topic(tables: None) -> Topic:
    return _topic("events", {}, {})


def _topic(name: str, topic_attributes: dict[str, str], queue_attributes: dict[Any, str]) -> Topic:
    sns: SNSClient = boto3.client("sns", region_name=REGION)
    sqs: SQSClient = boto3.client("sqs", region_name=REGION)
    arn = sns.create_topic(Name=name, Attributes=topic_attributes)["TopicArn"]
    url = sqs.create_queue(QueueName=name, Attributes=queue_attributes)["QueueUrl"]
    queue_arn = sqs.get_queue_attributes(QueueUrl=url, AttributeNames=["QueueArn"])["Attributes"]["QueueArn"]
    sns.subscribe(TopicArn=arn, Protocol="sqs", Endpoint=queue_arn, Attributes={"RawMessageDelivery": "true"})
    send = topic_sender(arn)
    assert send is not None
    return Topic(arn, send, url, sqs)
