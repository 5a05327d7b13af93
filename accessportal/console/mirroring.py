"""Whether Cognito has followed, in words: a page never says that something is gone while Cognito still has it."""

from __future__ import annotations

from accessportal.directory.states import Mirrored


def done_or_pending(mirror: Mirrored, *, done: str, pending: str) -> str:
    return done if mirror.is_done else f"{pending} Cognito has not followed yet: {mirror.reason}"


def name_of_entity(entity: str) -> tuple[str, str]:
    """``person`` or ``group``, and its address or path."""
    kind, _, name = entity.partition("#")
    return kind, name
