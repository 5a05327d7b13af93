"""What came of making something so outside: a proof, or what is waited for. Every kind of access speaks these two."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime


@dataclass(frozen=True, slots=True)
class Proof:
    """What was proved by reading back: the receipt of a grant or a revocation.

    ``job_id`` and ``job_status`` are the outside system's own words, where it has any. ``called_at`` is when the call that
    changed it was sent (``None``: no call was needed). ``kept_by`` are the other claims that go on holding it (a revocation
    that only gave back its claim).
    """

    is_present: bool
    job_id: str
    job_status: str
    called_at: datetime | None
    proved_at: datetime
    kept_by: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Waiting:
    """Not proved yet. ``retry_at`` is when to look again; ``code`` and ``reason`` say what is waited for.

    ``is_error`` is false while a job is simply running. ``is_queued``: others must free a place first, so standing by for it
    would keep a worker from work that can go on. ``is_final``: it can never be so, because what was decided on is gone.
    """

    code: str
    reason: str
    retry_at: datetime
    is_error: bool
    is_queued: bool = False
    is_final: bool = False
