"""The seam for who follows the directory outside: work is written with each change, and an attempt may come right after it."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from datetime import datetime
from typing import Protocol

from accessportal.directory.states import Mirrored


class Follower(Protocol):
    """Makes one attempt to follow a change of ``entity``, a person or group by its audit name, and never raises for trouble outside."""

    def __call__(self, *, entity: str, now: datetime) -> Mirrored: ...


_follower: Follower | None = None
_is_later: ContextVar[bool] = ContextVar("following_later", default=False)


def set_follower(follower: Follower | None) -> None:
    """Called once at start-up; ``None``: nobody follows, and no work is written."""
    global _follower
    _follower = follower


def is_followed() -> bool:
    return _follower is not None


def follow(*, entity: str, now: datetime) -> Mirrored:
    """One attempt right after a change, which stands whatever comes of it: the sweep goes on."""
    if _follower is None:
        return Mirrored(is_done=True)
    if _is_later.get():
        return Mirrored(is_done=False, reason="It is left to the sweep.")
    return _follower(entity=entity, now=now)


@contextmanager
def following_later() -> Iterator[None]:
    """In this thread no change is followed by its immediate attempt: for changing very many things. The work is written as always."""
    token = _is_later.set(True)
    try:
        yield
    finally:
        _is_later.reset(token)
