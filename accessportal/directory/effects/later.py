"""Changing very many things at once without waiting for Cognito after each: the sweep brings it up to date afterwards."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar

_is_later: ContextVar[bool] = ContextVar("mirroring_later", default=False)


@contextmanager
def mirroring_later() -> Iterator[None]:
    """In this thread no change is followed by its immediate attempt; the work that asks for it is written as always."""
    token = _is_later.set(True)
    try:
        yield
    finally:
        _is_later.reset(token)


def is_later() -> bool:
    return _is_later.get()
