"""The lines that work waits in. Each has processes of its own, so that what is slow in one delays nothing in another."""

from __future__ import annotations

from enum import StrEnum


class Line(StrEnum):
    """The value is the line's name in the queue's table."""

    # What ends access: nothing may stand before it, not even a hundred grants.
    SWEEP = "sweep"
    # What somebody waits for.
    URGENT = "urgent"
    # The queue's only name before there were lines: what waits there from then is still done.
    SLOW = "accessportal"

    @property
    def part(self) -> str:
        """Its name among the heartbeats."""
        return f"{self.name.lower()}_line"
