"""What an installation sets for the pool."""

from __future__ import annotations

from dataclasses import dataclass

from accessportal.kernel.setting import Setting


@dataclass(frozen=True, slots=True)
class SandboxSettings:
    """Hold what an installation sets: a release counts ``grace_seconds`` after the deadline; no lab lasts longer than ``longest_hours``;
    two looks at the provider's list count as two ``sync_gap_seconds`` apart; deletions are ``clean_gap_seconds`` apart. ``programs_first``:
    what becomes free goes on the free list, where programs may take it before those who wait in line."""

    grace_seconds: int = 300
    longest_hours: int = 24
    sync_gap_seconds: int = 240
    clean_gap_seconds: float = 0.2
    programs_first: bool = False


_settings = Setting(SandboxSettings())
configure, current = _settings.configure, _settings.current
