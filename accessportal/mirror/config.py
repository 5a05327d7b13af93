"""What an installation sets for Cognito."""

from __future__ import annotations

from dataclasses import dataclass

from accessportal.kernel.setting import Setting


@dataclass(frozen=True, slots=True)
class MirrorSettings:
    """``user_pool_id``: the Cognito user pool that follows the directory; empty for none. ``user_pool_invites``: Cognito sends each new
    user a temporary password; else nobody knows it, because people come from another identity provider."""

    user_pool_id: str = ""
    user_pool_invites: bool = False


_settings = Setting(MirrorSettings())
configure, current = _settings.configure, _settings.current
