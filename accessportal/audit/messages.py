"""Events as the world outside gets them (``docs/events.md``). Pure."""

from __future__ import annotations

import hashlib
import json
import re
from typing import Any

from accessportal.audit.states import AuditEvent
from accessportal.aws.sns import MOST_BYTES, Message

# Grows when a consumer that read the former form could misread the new one; a new type or field of data is no such change.
SCHEMA = 1

_GROUP_ID = re.compile(r"[!-~]{1,128}")


def message_of(event: AuditEvent, *, epoch: int = 0) -> Message:
    """The event with its id for deduplication, its sequence counted on from ``epoch``. One that is too long for SNS goes without its data,
    and says so."""
    body = envelope(event, epoch=epoch)
    message = _message(event, body)
    if message.size > MOST_BYTES:
        message = _message(event, body | {"data": {}, "data_left_out": True})
    return message


def envelope(event: AuditEvent, *, epoch: int = 0) -> dict[str, Any]:
    """The body before it is JSON; ``docs/events.schema.json`` describes it. ``epoch``: of the restore after which it happened, so that
    no sequence that consumers saw in the time that was lost comes again."""
    return {
        "schema": SCHEMA,
        "id": event.event_id,
        "type": event.action,
        "entity": event.entity,
        "sequence": epoch + event.sequence,
        "at": event.at.isoformat(timespec="milliseconds"),
        "actor": event.actor,
        "subject": event.subject,
        "scope": event.scope,
        "data": event.data,
        "data_left_out": False,
    }


def group_id(entity: str) -> str:
    """SNS's name for the order of one entity's events: itself, or its digest where SNS does not allow its characters or length."""
    return entity if _GROUP_ID.fullmatch(entity) else "sha256:" + hashlib.sha256(entity.encode()).hexdigest()


def _message(event: AuditEvent, body: dict[str, Any]) -> Message:
    return Message(
        # ASCII alone: queues refuse some characters that events may hold.
        body=json.dumps(body, separators=(",", ":")),
        attributes={"type": event.action, "entity": event.entity},
        group_id=group_id(event.entity),
        deduplication_id=event.event_id,
    )
