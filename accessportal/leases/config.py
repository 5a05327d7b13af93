"""What an installation sets for the pool of accounts."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass


def _anything_goes(_account_id: str) -> str:
    return ""


@dataclass(frozen=True, slots=True)
class LeaseSettings:
    """``undo_seconds``: so long the last holder may take back what they gave back, and cleaning waits (0: not at all). ``flaw_of`` says
    why an account may not go out; empty when it may."""

    undo_seconds: int = 120
    flaw_of: Callable[[str], str] = _anything_goes


_settings = LeaseSettings()


def configure(settings: LeaseSettings) -> None:
    """Called once at start-up."""
    global _settings
    _settings = settings


def current() -> LeaseSettings:
    return _settings
