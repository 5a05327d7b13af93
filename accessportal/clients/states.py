"""Records of the API tokens of machine clients."""

from __future__ import annotations

import enum
from dataclasses import dataclass
from datetime import datetime

from accessportal.kernel.errors import NotAllowed, NotFound

DEFAULT_RATE = 600
MOST_RATE = 100_000
LONGEST_NAME = 80


class Scope(enum.StrEnum):
    """What a token opens: the lending of sandboxes to tracks, or that and the care of the whole pool."""

    TRACK = "track"
    ADMIN = "admin"


class TokenState(enum.StrEnum):
    """Whether a token is let in; ``expired`` and ``revoked`` are for good."""

    LIVE = "live"
    EXPIRED = "expired"
    REVOKED = "revoked"


@dataclass(frozen=True, slots=True)
class ApiToken:
    """A token without its secret. ``expires_at`` ``None``: until it is revoked. ``last_used_at`` is at most a minute behind."""

    token_id: str
    name: str
    scope: Scope
    rate_per_minute: int
    created_by: str
    created_at: datetime
    expires_at: datetime | None = None
    last_used_at: datetime | None = None
    revoked_by: str = ""
    revoked_at: datetime | None = None
    version: int = 0
    audit_head: str = ""

    @property
    def entity(self) -> str:
        return entity_of(self.token_id)

    def state(self, now: datetime) -> TokenState:
        if self.revoked_at is not None:
            return TokenState.REVOKED
        if self.expires_at is not None and self.expires_at <= now:
            return TokenState.EXPIRED
        return TokenState.LIVE


@dataclass(frozen=True, slots=True)
class NewToken:
    """A token and, this once, its ``text``: nobody can read it again later."""

    token: ApiToken
    text: str

    def __repr__(self) -> str:
        # A record finds its way into logs and traces; this one's secret must not.
        return f"NewToken(token={self.token!r}, text=…)"


class NoSuchToken(NotFound):
    """No token has this id."""

    def __init__(self) -> None:
        super().__init__("There is no such API token.", code="token_not_found")


class TokenRefused(NotAllowed):
    """The text opens nothing. ``code``: ``invalid_token``, ``token_revoked`` or ``token_expired``.

    The last two are told only to whoever has shown the right secret.
    """


def entity_of(token_id: str) -> str:
    """The name of a token's chain in the audit log."""
    return f"token#{token_id}"
