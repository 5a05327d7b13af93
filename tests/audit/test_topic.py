"""The client of SNS: what fits into a call, and what its answers mean."""

from __future__ import annotations

from typing import Any

import pytest
from botocore.stub import Stubber

from accessportal.aws import sns
from accessportal.aws.clients import sns_client
from accessportal.aws.errors import Gone, OutsideError, Refused, Throttled, Transient
from accessportal.aws.sns import MOST_BYTES, Message, batches, publish_batch
from tests.audit.conftest import Topic

ARN = "arn:aws:sns:eu-central-1:123456789012:events"


def message(body: str = "{}", number: int = 0) -> Message:
    return Message(body=body, attributes={"type": "a", "entity": "b"}, group_id=f"g{number}", deduplication_id=f"d{number}")


def test_ten_messages_a_call_and_no_more_bytes_than_allowed() -> None:
    assert [len(batch) for batch in batches(message() for _ in range(23))] == [10, 10, 3]
    assert list(batches([])) == []
    third = "x" * (MOST_BYTES // 3 - 100)
    assert [len(batch) for batch in batches(message(third) for _ in range(7))] == [3, 3, 1]
    assert [len(batch) for batch in batches([message(), message("x" * MOST_BYTES), message()])] == [1, 1, 1]


def test_size_counts_bytes_and_attributes() -> None:
    assert Message("ü", {"type": "é"}, "g", "d").size == 2 + len("type") + len("String") + 2


def answered(stub: Stubber, *, failed: list[dict[str, Any]], successful: list[str]) -> None:
    taken = [{"Id": each, "MessageId": f"m-{each}"} for each in successful]
    stub.add_response("publish_batch", {"Successful": taken, "Failed": failed})


@pytest.mark.usefixtures("twin")
def test_each_message_has_its_own_answer() -> None:
    with Stubber(sns_client()) as stub:
        answered(
            stub,
            successful=["0"],
            failed=[
                {"Id": "1", "Code": "InvalidParameter", "Message": "no", "SenderFault": True},
                {"Id": "2", "Code": "InternalError", "SenderFault": False},
            ],
        )
        first, second, third, fourth = publish_batch(ARN, [message(number=number) for number in range(4)])

    assert first is None
    assert isinstance(second, Refused)
    assert isinstance(third, Transient)
    assert isinstance(fourth, Transient)
    assert fourth.code == "NoAnswer"


@pytest.mark.usefixtures("twin")
def test_a_call_refused_for_one_message_is_made_for_each() -> None:
    with Stubber(sns_client()) as stub:
        stub.add_client_error("publish_batch", "InvalidParameter", "Invalid parameter: Message")
        answered(stub, successful=["0"], failed=[])
        stub.add_client_error("publish_batch", "InvalidParameter", "Invalid parameter: Message")
        good, bad = publish_batch(ARN, [message(number=0), message(number=1)])
        stub.assert_no_pending_responses()

    assert good is None
    assert isinstance(bad, Refused)


@pytest.mark.usefixtures("twin")
@pytest.mark.parametrize(
    ("code", "status", "kind"),
    [
        ("NotFound", 404, Gone),
        ("AuthorizationError", 403, Refused),
        ("Throttled", 429, Throttled),
        ("KMSThrottling", 400, Throttled),
        ("InternalError", 500, Transient),
        ("KMSAccessDenied", 400, Refused),
    ],
)
def test_what_is_not_about_a_message_is_raised(code: str, status: int, kind: type[OutsideError]) -> None:
    with Stubber(sns_client()) as stub:
        stub.add_client_error("publish_batch", code, "no", http_status_code=status)
        with pytest.raises(kind) as raised:
            publish_batch(ARN, [message(), message(number=1)])
        stub.assert_no_pending_responses()

    assert type(raised.value) is kind


def test_a_topic_that_does_not_exist_is_gone(topic: Topic) -> None:
    with pytest.raises(Gone):
        publish_batch(f"{topic.arn}-no", [message()])
    assert sns.publish_batch(topic.arn, [message()]) == (None,)
