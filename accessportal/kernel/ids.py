"""Identifiers."""

from __future__ import annotations

import hashlib
import os
import re
import uuid
from datetime import datetime

_UUID = re.compile(r"[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}")


def new_submission_id() -> str:
    """A once-only token for a form (uuid4)."""
    return str(uuid.uuid4())


def request_id_for(*, requested_by: str, submission_id: str) -> str:
    """Make the request id (a uuid4 in form, seed 000) that this person's submission always gets: the digest of who sent what, so that the
    same form sent twice meets its own key. Another person's equal token gives another id."""
    digest = hashlib.sha256(f"{len(requested_by)}:{requested_by}:{submission_id}".encode()).digest()
    return str(uuid.UUID(bytes=digest[:16], version=4))


def is_request_id(text: str) -> bool:
    """Whether it names a request. Whoever holds something without one has another name."""
    return bool(_UUID.fullmatch(text))


def new_event_id(at: datetime) -> str:
    """A uuid7 (RFC 9562): sorts by ``at`` to the millisecond; the rest is random."""
    milliseconds = int(at.timestamp() * 1000) & (2**48 - 1)
    random = int.from_bytes(os.urandom(10), "big")
    value = milliseconds << 80 | 0x7 << 76 | (random >> 68 & 0xFFF) << 64 | 0b10 << 62 | random & (2**62 - 1)
    return str(uuid.UUID(int=value))
