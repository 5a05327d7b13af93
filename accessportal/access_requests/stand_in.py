"""The record of a stand-in."""

from __future__ import annotations

import enum
from dataclasses import dataclass
from datetime import datetime

LONGEST_NOTE = 200


class StandInState(enum.StrEnum):
    """Whether somebody decides by it: ``over`` and ``taken back`` are for good."""

    LATER = "later"
    NOW = "now"
    OVER = "over"
    TAKEN_BACK = "taken back"

    @property
    def is_for_good(self) -> bool:
        return self in (StandInState.OVER, StandInState.TAKEN_BACK)


@dataclass(frozen=True, slots=True, kw_only=True)
class StandIn:
    """``stand_in`` may decide in the place of ``approver``, who named them, from ``starts_at`` until ``ends_at``, or until ``ended_by``
    took it back. ``stand_in_id`` begins with the end."""

    stand_in_id: str
    stand_in: str
    approver: str
    named_at: datetime
    starts_at: datetime
    ends_at: datetime
    note: str = ""
    ended_by: str = ""
    ended_at: datetime | None = None
    version: int = 0
    audit_head: str = ""
    purge_at: datetime | None = None

    @property
    def entity(self) -> str:
        """The name of its chain in the audit log."""
        return f"stand_in#{self.stand_in_id}"

    def counts_at(self, moment: datetime) -> bool:
        """Whether it gives the right to decide then, as far as it tells by itself."""
        return self.ended_at is None and self.starts_at <= moment < self.ends_at

    def state(self, now: datetime) -> StandInState:
        if self.ended_at is not None:
            return StandInState.TAKEN_BACK
        if now >= self.ends_at:
            return StandInState.OVER
        return StandInState.NOW if self.counts_at(now) else StandInState.LATER
