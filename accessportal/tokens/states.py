"""Records of the API tokens of machine clients."""

from __future__ import annotations

import enum
import math
from dataclasses import dataclass
from datetime import datetime

from accessportal.kernel.errors import NotAllowed, NotFound, PortalError

DEFAULT_DAYS = 90
DEFAULT_RATE = 600
MOST_HELD = 1_000
MOST_TRACKS = 50
MOST_RATE = 100_000
LONGEST_NAME = 80


class Scope(enum.StrEnum):
    """What a token opens: the lending of sandboxes to tracks, or that and the care of the whole pool; within its home scope,
    questions about approvals and relationships, or these and their writing; asking for account leases in people's names, or that and the
    care of the pool of accounts; who had access to what."""

    TRACK = "track"
    ADMIN = "admin"
    AUTHZ_CHECK = "authz:check"
    AUTHZ_WRITE = "authz:write"
    LEASES_ASK = "leases:ask"
    LEASES_ADMIN = "leases:admin"
    HISTORY = "history"

    @property
    def has_home(self) -> bool:
        return self in (Scope.AUTHZ_CHECK, Scope.AUTHZ_WRITE)

    @property
    def cares_for_pool(self) -> bool:
        """Whether its programs do what operators do for the pool that it is about."""
        return self in (Scope.ADMIN, Scope.LEASES_ADMIN)


class TokenState(enum.StrEnum):
    """Whether a token is let in; ``expired`` and ``revoked`` are for good."""

    LIVE = "live"
    EXPIRED = "expired"
    REVOKED = "revoked"


@dataclass(frozen=True, slots=True)
class ApiToken:
    """A token without its secret. ``last_used_at`` is at most a minute behind. ``tracks``: those it may act for, with ``*`` at the end all
    that begin so; none: any. ``most_held``: how many of the sandboxes that it took may stand at a time. ``home_scope``: the scope of
    approvals and relationships that bounds one of an ``authz`` scope; empty for the others."""

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
    tracks: tuple[str, ...] = ()
    most_held: int | None = None
    home_scope: str = ""

    @property
    def entity(self) -> str:
        return entity_of(self.token_id)

    @property
    def is_by_portal(self) -> bool:
        """Made by no person, whose right could end."""
        return self.created_by.startswith("system:")

    def state(self, now: datetime) -> TokenState:
        if self.revoked_at is not None:
            return TokenState.REVOKED
        if self.expires_at is not None and self.expires_at <= now:
            return TokenState.EXPIRED
        return TokenState.LIVE


@dataclass(frozen=True, slots=True)
class StoredToken:
    """A token as it lies in the table. ``check`` is another one when its secret is."""

    token: ApiToken
    check: str

    @property
    def entity(self) -> str:
        return self.token.entity

    @property
    def version(self) -> int:
        return self.token.version

    @property
    def audit_head(self) -> str:
        return self.token.audit_head


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
    """The text opens nothing. ``code``: ``invalid_token``; and, only told to whoever has shown the right secret, ``token_revoked``,
    ``token_expired``, ``token_orphaned``."""


class RateLimited(PortalError):
    """Too much was asked in this minute; ``retry_after`` seconds are left of it."""

    def __init__(self, message: str, seconds: float) -> None:
        self.retry_after = max(1, math.ceil(seconds))
        super().__init__(f"{message} Go on in {self.retry_after} s.", code="rate_limited")


def entity_of(token_id: str) -> str:
    """The name of a token's chain in the audit log."""
    return f"token#{token_id}"
