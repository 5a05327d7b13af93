"""Who asks: a machine client by its bearer token, read anew at every request, within its rate and its scope."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime

import structlog
from django.conf import settings
from django.http import HttpRequest
from ninja.security.http import HttpAuthBase

from accessportal.identity.queries import is_operator
from accessportal.kernel.actors import Actor, Role, client
from accessportal.kernel.addresses import client_address
from accessportal.kernel.clock import SystemClock
from accessportal.kernel.errors import NotAllowed
from accessportal.store.reading import Beside, ItemKey, ReadAhead
from accessportal.tokens import operations as tokens
from accessportal.tokens.states import ApiToken, RateLimited, Scope


@dataclass(frozen=True, slots=True)
class Client:
    """Who asks, and whether the pool as a whole is open to it. ``ahead``: what was read with the token."""

    actor: Actor
    is_admin: bool
    token: ApiToken
    ahead: ReadAhead = field(default_factory=dict)

    def require_track(self, track: str) -> None:
        """:raises NotAllowed: when its token may not act for the track."""
        tokens.require_track(token=self.token, track=track)


_OPEN_TO = {
    Scope.TRACK: (Scope.TRACK, Scope.ADMIN),
    Scope.ADMIN: (Scope.ADMIN,),
    Scope.AUTHZ_CHECK: (Scope.AUTHZ_CHECK, Scope.AUTHZ_WRITE),
    Scope.AUTHZ_WRITE: (Scope.AUTHZ_WRITE,),
    Scope.LEASES_ASK: (Scope.LEASES_ASK, Scope.LEASES_ADMIN),
    Scope.LEASES_ADMIN: (Scope.LEASES_ADMIN,),
    Scope.HISTORY: (Scope.HISTORY,),
}


class BearerToken(HttpAuthBase):
    """For operations that need ``scope``: a token of scope ``admin`` may do all that one of scope ``track`` may, one of ``authz:write`` all
    that one of ``authz:check`` may, and one of ``leases:admin`` all that one of ``leases:ask`` may. ``beside``: the items that the
    operation begins with, for a request of an actor; nothing is decided by them before the token is let in."""

    openapi_scheme = "bearer"

    def __init__(self, scope: Scope, *, beside: Callable[[HttpRequest, Actor], Sequence[ItemKey]] = lambda *_: ()) -> None:
        super().__init__()
        self._scope = scope
        self._beside = beside

    def __call__(self, request: HttpRequest) -> Client | None:
        """Return the client; ``None``: no bearer token was sent. TokenRefused when it is unknown, revoked, expired, or of somebody who is
        no operator any more; RateLimited when its minute is used up, or too many unknown ones came from the same address; NotAllowed when
        its scope is too small."""
        scheme, _, text = request.headers.get("Authorization", "").partition(" ")
        if scheme.lower() != self.openapi_scheme or not text:
            return None
        now = SystemClock().now()
        address = client_address(request.META, trusted_proxies=settings.TRUSTED_PROXIES)
        beside = Beside(lambda token_id: self._beside(request, client(token_id)))
        token = tokens.authenticate(text=text.strip(), address=address, beside=beside, now=now)
        structlog.contextvars.bind_contextvars(client=token.token_id)
        count_request(token, now=now)
        tokens.require_maker(token=token, is_operator=lambda email: is_operator(email=email, since=token.created_at, now=now))
        return _client(token, self._scope, beside.found)


def count_request(token: ApiToken, *, now: datetime) -> None:
    """:raises RateLimited: when the token has no requests left in this minute."""
    seconds = tokens.claim_request(token=token, now=now)
    if seconds > 0:
        raise RateLimited("This token has no requests left.", seconds)


def _client(token: ApiToken, needed: Scope, ahead: ReadAhead) -> Client:
    if token.scope not in _OPEN_TO[needed]:
        raise NotAllowed(f"This needs a token of scope {needed}; yours has scope {token.scope}.", code="insufficient_scope")
    is_admin = token.scope.cares_for_pool
    actor = client(token.token_id)
    if is_admin:
        actor = replace(actor, roles=frozenset({Role.OPERATOR}), operator_until=token.expires_at)
    if token.scope is Scope.HISTORY:
        actor = replace(actor, roles=frozenset({Role.AUDITOR}))
    return Client(actor, is_admin, token, ahead)


def client_of(request: HttpRequest) -> Client:
    """Who asks. Only for operations that need a token."""
    found: object = getattr(request, "auth", None)
    assert isinstance(found, Client)
    return found
