"""What an installation sets for assignments."""

from __future__ import annotations

from dataclasses import dataclass

from accessportal.kernel.setting import Setting


@dataclass(frozen=True, slots=True)
class Limits:
    """What all workers together may ask of IAM Identity Center (AWS quotas: 20 calls a second, 10 open creations). ``comparing_share`` of
    the calls are the most that comparing everything takes."""

    calls_per_second: float = 18.0
    open_creations: int = 10
    comparing_share: float = 0.5


_limits = Setting(Limits())
configure, current = _limits.configure, _limits.current
