"""Records of the audit log."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Protocol

from accessportal.aws.errors import OutsideError
from accessportal.aws.sns import Message
from accessportal.kernel.clock import Precise
from accessportal.kernel.runs import Report

RETENTION = "retention#audit_log"
"""The chain that tells what was ordered to go from the audit log."""
Send = Callable[[Sequence[Message]], Sequence[OutsideError | None]]
"""Hands one batch to the topic: :func:`accessportal.aws.sns.publish_batch` without the topic's name."""


class Chained(Protocol):
    """A record with a chain in the audit log: ``version`` counts its events (0: none yet), ``audit_head`` is the hash of the last."""

    @property
    def entity(self) -> str: ...
    @property
    def version(self) -> int: ...
    @property
    def audit_head(self) -> str: ...


@dataclass(frozen=True, slots=True)
class Draft:
    """What a domain function wants told: the registered ``action``, who it is about, and its allow-listed ``data``: strings, whole numbers,
    booleans, and lists and string-keyed maps of these (what both JSON and DynamoDB hold without loss)."""

    action: str
    subject: str
    data: dict[str, Any]
    scope: str = ""


@dataclass(frozen=True, slots=True)
class AuditEvent:
    """One written event. ``sequence`` is the version that the entity got by the change, from 1, without a gap. ``flaw``: what is wrong with
    the item beyond its hash. ``is_published``: it has left for the topic of events (no part of the hash). ``key_id``: of the hash's key.
    ``pseudonym_id``: of the key whose pseudonyms the hash covers in the place of people (empty: it covers their addresses and names).
    ``seal``: vouches for an event of before pseudonyms in which somebody was erased; its ``hash`` is of what it was."""

    entity: str
    sequence: int
    event_id: str
    at: Precise
    action: str
    actor: str
    subject: str
    data: dict[str, Any]
    hash: str
    scope: str = ""
    prev_hash: str = ""
    key_id: str = ""
    pseudonym_id: str = ""
    seal: str = ""
    flaw: str = ""
    is_published: bool = False


@dataclass(frozen=True, slots=True)
class ChainBreak:
    """Where a chain is not what its hashes say, in words."""

    entity: str
    sequence: int
    problem: str


@dataclass(frozen=True, slots=True)
class Unpublished:
    """How many events wait to be published (``is_more``: at least so many), and since when the oldest of them."""

    count: int
    is_more: bool
    oldest_at: datetime | None


@dataclass(frozen=True, slots=True)
class PublishReport(Report):
    """What one run did. Without a topic every event is kept. ``repeated`` were marked by another run while this one sent them,
    ``left_to_others`` are shards that somebody else is at, ``is_finished``: every shard was read to its end. A failed item is the event at
    which its entity's events wait."""

    has_topic: bool
    published: int = 0
    repeated: int = 0
    left_to_others: int = 0
    is_finished: bool = False
