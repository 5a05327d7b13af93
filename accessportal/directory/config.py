"""What an installation sets for the directory."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class DirectorySettings:
    """``user_pool_id``: the Cognito user pool that follows the table; empty for none, then nothing is mirrored.

    ``user_pool_invites``: Cognito invites each new user by e-mail, with a temporary password; else nobody knows their password,
    because they come from another identity provider.
    """

    user_pool_id: str = ""
    user_pool_invites: bool = False


_settings = DirectorySettings()


def configure(settings: DirectorySettings) -> None:
    """Called once at start-up."""
    global _settings
    _settings = settings


def current() -> DirectorySettings:
    return _settings
