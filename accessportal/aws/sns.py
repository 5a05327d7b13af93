"""Publishing to a topic of SNS, in batches."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from accessportal.aws.clients import sns_client
from accessportal.aws.errors import OutsideError, Refused, Transient, sorted_call

if TYPE_CHECKING:
    from mypy_boto3_sns.type_defs import PublishBatchRequestEntryTypeDef

# Limits of PublishBatch. The bytes hold for each message and for all messages of a call together.
MOST_MESSAGES = 10
MOST_BYTES = 262_144

# SNS refuses the whole call for what is wrong with one of its messages.
_ABOUT_A_MESSAGE = frozenset({"InvalidParameter", "InvalidParameterValue", "ParamValidationError", "BatchRequestTooLong"})
_STRING = "String"


@dataclass(frozen=True, slots=True)
class Message:
    """``attributes`` are strings, none empty, that subscribers filter by. ``group_id`` (delivered in order; 128 characters of ASCII without
    spaces at most) and ``deduplication_id`` (once within five minutes) count on FIFO topics only."""

    body: str
    attributes: Mapping[str, str]
    group_id: str
    deduplication_id: str

    @property
    def size(self) -> int:
        """Its bytes as SNS counts them: the body, and each attribute's name, type and value."""
        parts = (name + _STRING + value for name, value in self.attributes.items())
        return sum(len(part.encode()) for part in (self.body, *parts))


def batches(messages: Iterable[Message]) -> Iterator[list[Message]]:
    """``messages`` in their order, cut into what one call may carry. A message that is too long by itself comes alone."""
    batch: list[Message] = []
    size = 0
    for message in messages:
        if batch and (len(batch) == MOST_MESSAGES or size + message.size > MOST_BYTES):
            yield batch
            batch, size = [], 0
        batch.append(message)
        size += message.size
    if batch:
        yield batch


def publish_batch(topic_arn: str, messages: Sequence[Message]) -> tuple[OutsideError | None, ...]:
    """Hand one batch to the topic, in one attempt; say of each message why SNS would not take it, or ``None``. Never two of one group:
    messages fail one by one. After :class:`Transient` some or all may have been published."""
    entries = [_entry(number, message, is_fifo=topic_arn.endswith(".fifo")) for number, message in enumerate(messages)]
    try:
        answer = sorted_call(sns_client().publish_batch, TopicArn=topic_arn, PublishBatchRequestEntries=entries)
    except Refused as error:
        if error.code not in _ABOUT_A_MESSAGE:
            raise
        if len(messages) == 1:
            return (error,)
        return tuple(result for message in messages for result in publish_batch(topic_arn, [message]))
    outcome: dict[str, OutsideError | None] = {each.get("Id", ""): None for each in answer.get("Successful", [])}
    for failed in answer.get("Failed", []):
        kind = Refused if failed["SenderFault"] else Transient
        outcome[failed["Id"]] = kind(failed["Code"], failed.get("Message", ""))
    unanswered = Transient("NoAnswer", "SNS did not say whether it took this message")
    return tuple(outcome.get(entry["Id"], unanswered) for entry in entries)


def _entry(number: int, message: Message, *, is_fifo: bool) -> PublishBatchRequestEntryTypeDef:
    entry: PublishBatchRequestEntryTypeDef = {
        "Id": str(number),
        "Message": message.body,
        "MessageAttributes": {name: {"DataType": _STRING, "StringValue": value} for name, value in message.attributes.items()},
    }
    if is_fifo:
        entry["MessageGroupId"] = message.group_id
        entry["MessageDeduplicationId"] = message.deduplication_id
    return entry
