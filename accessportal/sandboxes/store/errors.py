"""How a conditional write of the pool can be lost."""

from __future__ import annotations

from accessportal.store.transactions import Step


class Overtaken(Exception):
    """Another writer changed the sandbox since it was read. Read it again and decide again."""


class KeyOvertaken(Exception):
    """Another writer changed the idempotency key since it was read. Read it again and decide again."""


class Exists(Exception):
    """There is a sandbox with this id already."""


class FurtherFailed(Exception):
    """A step that was handed in beside the sandbox's own did not hold; nothing was written."""

    def __init__(self, step: Step) -> None:
        super().__init__("a further condition of the change did not hold")
        self.step = step
