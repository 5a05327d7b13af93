"""Records of the audit log."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import Any


@dataclass(frozen=True, slots=True)
class Draft:
    """What a domain function wants told: the registered ``action``, who it is about, and its allow-listed ``data``.

    ``data`` holds strings, whole numbers, booleans, and lists and string-keyed maps of these (what both JSON and
    DynamoDB hold without loss).
    """

    action: str
    subject: str
    data: dict[str, Any]
    scope: str = ""


@dataclass(frozen=True, slots=True)
class AuditEvent:
    """One written event. ``sequence`` is the version that the entity got by the change, from 1, without a gap.

    ``flaw``: what is wrong with the item itself, beyond its hash; empty for every event as it was written.
    """

    entity: str
    sequence: int
    event_id: str
    at: datetime
    action: str
    actor: str
    subject: str
    scope: str
    data: dict[str, Any]
    prev_hash: str
    hash: str
    flaw: str = ""


@dataclass(frozen=True, slots=True)
class ChainBreak:
    """Where a chain is not what its hashes say, in words."""

    entity: str
    sequence: int
    problem: str
