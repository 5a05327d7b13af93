"""What an installation sets for the pool."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class SandboxSettings:
    """``grace_seconds``: a release still counts so long after the deadline, and only then a sandbox is taken back.
    ``longest_hours``: no lab lasts longer; allocations of other programs that are older are looked for by age.
    ``sync_gap_seconds``: two looks at the provider's list are two sightings only this far apart.
    ``clean_gap_seconds``: between two deletions of one run.
    """

    grace_seconds: int = 300
    longest_hours: int = 24
    sync_gap_seconds: int = 240
    clean_gap_seconds: float = 0.2


_settings = SandboxSettings()


def configure(settings: SandboxSettings) -> None:
    """Called once at start-up."""
    global _settings
    _settings = settings


def current() -> SandboxSettings:
    return _settings
