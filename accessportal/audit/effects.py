"""The one call outside: a batch of messages to the topic of events."""

from __future__ import annotations

import functools

from accessportal.audit.states import Send
from accessportal.aws import sns


def topic_sender(topic_arn: str) -> Send | None:
    """What hands batches to the topic; ``None`` when no topic is set."""
    return functools.partial(sns.publish_batch, topic_arn) if topic_arn else None
