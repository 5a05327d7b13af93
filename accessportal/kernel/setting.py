"""What an installation sets once."""

from __future__ import annotations

from typing import Generic, TypeVar

T = TypeVar("T")


class Setting(Generic[T]):
    """A value that is its default until the installation sets it."""

    def __init__(self, default: T) -> None:
        self._value = default

    def configure(self, value: T, /) -> None:
        """Called once at start-up."""
        self._value = value

    def current(self) -> T:
        return self._value
