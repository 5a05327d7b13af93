"""The fixtures of the directory, whose mirror this is."""

from __future__ import annotations

from tests.directory.conftest import world

__all__ = ["world"]
