"""How a conditional write of the pool can be lost."""

from __future__ import annotations


class Overtaken(Exception):
    """Another writer changed the sandbox since it was read. Read it again and decide again."""


class KeyOvertaken(Exception):
    """Another writer changed the idempotency key since it was read. Read it again and decide again."""


class Exists(Exception):
    """There is a sandbox with this id already."""
