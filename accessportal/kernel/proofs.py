"""What came of making something so outside: a proof, or what is waited for. Every kind of access speaks these two."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime


@dataclass(frozen=True, slots=True)
class Proof:
    """The receipt of a grant or a revocation, proved by reading back. ``job_id`` and ``job_status`` are the outside system's words.
    ``called_at``: when the call that changed it was sent; ``None`` for none. ``kept_by``: the claims that go on holding it. ``ends_at``:
    until when it was given, where its time runs from the hand-over; ``account_id``: the account, where the request names none."""

    is_present: bool
    job_id: str
    job_status: str
    called_at: datetime | None
    proved_at: datetime
    kept_by: tuple[str, ...] = ()
    ends_at: datetime | None = None
    account_id: str = ""


@dataclass(frozen=True, slots=True)
class Waiting:
    """Not proved yet: ``code`` and ``reason`` say what is waited for until ``retry_at``. ``is_error`` is false while a job runs.
    ``is_queued``: others must free a place first, so nobody stands by. ``is_final``: what was decided on is gone."""

    code: str
    reason: str
    retry_at: datetime
    is_error: bool
    is_queued: bool = False
    is_final: bool = False
