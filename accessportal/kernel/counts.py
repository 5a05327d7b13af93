"""Counted things in words."""

from __future__ import annotations


def counted(count: int, one: str, many: str) -> str:
    """``1 group``, ``3 groups``, ``0 groups``."""
    return f"{count} {one if count == 1 else many}"
