"""Counted things in words."""

from __future__ import annotations

from dataclasses import dataclass


def counted(count: int, one: str, many: str) -> str:
    """``1 group``, ``3 groups``, ``0 groups``."""
    return f"{count} {one if count == 1 else many}"


@dataclass(frozen=True, slots=True)
class Count:
    """What a bounded look has counted; ``is_more``: it did not reach the end, so there may be more."""

    seen: int
    is_more: bool = False

    @property
    def words(self) -> str:
        """``3``; ``25+``; nothing for none; ``?`` for none among those looked at, while there are others."""
        if self.seen:
            return f"{self.seen}{'+' if self.is_more else ''}"
        return "?" if self.is_more else ""
