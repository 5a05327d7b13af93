"""What an installation sets for approvals and relationships."""

from __future__ import annotations

from dataclasses import dataclass

from accessportal.kernel.setting import Setting


@dataclass(frozen=True, slots=True)
class AuthzSettings:
    """``global_scope``: ``allow``, ``warn`` or ``refuse`` grants in the global scope (the seed's three phases).
    ``chain_depth``: so many links at most are followed."""

    global_scope: str = "allow"
    chain_depth: int = 8


_settings = Setting(AuthzSettings())
configure, current = _settings.configure, _settings.current
