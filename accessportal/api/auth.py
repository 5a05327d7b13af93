"""Who asks: a machine client by its bearer token, read anew at every request, within its rate and its scope."""

from __future__ import annotations

from dataclasses import dataclass

import structlog
from django.http import HttpRequest
from ninja.security.http import HttpAuthBase

from accessportal.api.errors import RateLimited
from accessportal.clients import operations as clients
from accessportal.clients.states import ApiToken, Scope
from accessportal.kernel.actors import Actor, Role, client
from accessportal.kernel.clock import SystemClock
from accessportal.kernel.errors import NotAllowed


@dataclass(frozen=True, slots=True)
class Client:
    """Who asks, and whether the pool as a whole is open to it."""

    actor: Actor
    is_admin: bool


class BearerToken(HttpAuthBase):
    """For operations that need ``scope``; a token of scope ``admin`` may what ``track`` may."""

    openapi_scheme = "bearer"

    def __init__(self, scope: Scope) -> None:
        super().__init__()
        self._scope = scope

    def __call__(self, request: HttpRequest) -> Client | None:
        """``None``: no bearer token was sent.

        :raises TokenRefused: when it is unknown, revoked or expired.
        :raises RateLimited: when its requests of this minute are used up.
        :raises NotAllowed: when its scope is too small.
        """
        scheme, _, text = request.headers.get("Authorization", "").partition(" ")
        if scheme.lower() != self.openapi_scheme or not text:
            return None
        now = SystemClock().now()
        token = clients.authenticate(text=text.strip(), now=now)
        structlog.contextvars.bind_contextvars(client=token.token_id)
        seconds = clients.claim_request(token=token, now=now)
        if seconds > 0:
            raise RateLimited(seconds)
        return _client(token, self._scope)


def _client(token: ApiToken, needed: Scope) -> Client:
    is_admin = token.scope is Scope.ADMIN
    if needed is Scope.ADMIN and not is_admin:
        raise NotAllowed("This needs a token of scope admin; yours has scope track.", code="insufficient_scope")
    actor = client(token.token_id)
    return Client(Actor(actor.name, roles=frozenset({Role.OPERATOR})) if is_admin else actor, is_admin)


def client_of(request: HttpRequest) -> Client:
    """Who asks. Only for operations that need a token."""
    found: object = getattr(request, "auth", None)
    assert isinstance(found, Client)
    return found
