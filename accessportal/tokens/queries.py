"""Reads of the API tokens for the faces."""

from __future__ import annotations

from datetime import datetime

from accessportal.audit import queries as audit
from accessportal.audit.states import AuditEvent
from accessportal.kernel.actors import fold_email
from accessportal.kernel.pages import Page
from accessportal.tokens import policy, store
from accessportal.tokens.policy import may_manage, may_see
from accessportal.tokens.states import ApiToken, NoSuchToken, TokenState, entity_of
from accessportal.tokens.store import every_token, find_stored

__all__ = [
    "every_token",
    "explain",
    "find_stored",
    "find_token",
    "history",
    "list_of_maker",
    "list_tokens",
    "list_unrevoked",
    "may_manage",
    "may_see",
    "used_this_minute",
]


def find_token(*, token_id: str) -> ApiToken:
    """Find one token, strongly read. :raises NotFound: when there is none."""
    found = store.get(token_id)
    if found is None:
        raise NoSuchToken
    return found[0]


def list_unrevoked(*, cursor: str | None = None, limit: int = 50) -> Page[ApiToken]:
    """Those that nobody revoked, newest first; among them those whose time is over."""
    return store.page(with_revoked=False, cursor=cursor, limit=limit)


def list_tokens(*, cursor: str | None = None, limit: int = 50) -> Page[ApiToken]:
    """Every token that there ever was, newest first."""
    return store.page(with_revoked=True, cursor=cursor, limit=limit)


def list_of_maker(*, email: str, cursor: str | None = None, limit: int = 50) -> Page[ApiToken]:
    """Every token that somebody made, newest first. It may lag a moment."""
    return store.page_of_maker(fold_email(email), cursor=cursor, limit=limit)


def history(*, token_id: str, cursor: str | None = None, limit: int = 50) -> Page[AuditEvent]:
    """What happened to a token, newest first. Its requests are in the access log, not here."""
    return audit.history(entity_of(token_id), cursor=cursor, limit=limit)


def used_this_minute(*, token_id: str, now: datetime) -> int:
    """How many requests of this minute the server processes have reserved, used or not; at most the token's rate and a block."""
    return store.used_in(token_id, window_at=policy.window_of(now))


def explain(*, token_id: str, now: datetime) -> str:
    """Say in words whether the token is let in and how often. :raises NotFound: when there is no such token."""
    token = find_token(token_id=token_id)
    match token.state(now):
        case TokenState.REVOKED:
            return f"It opens nothing: {token.revoked_by} revoked it at {_shown(token.revoked_at)}."
        case TokenState.EXPIRED:
            return f"It opens nothing: its time was over at {_shown(token.expires_at)}."
        case TokenState.LIVE:
            end = "until somebody revokes it" if token.expires_at is None else f"until {_shown(token.expires_at)}"
            taken = min(used_this_minute(token_id=token_id, now=now), token.rate_per_minute)
            tracks = f" for {' and '.join(token.tracks)}" if token.tracks else ""
            held = f" It may hold {token.most_held} at a time." if token.most_held else ""
            home = f" within {token.home_scope}" if token.home_scope else ""
            maker = "" if token.is_by_portal else f" and as long as {token.created_by} is an operator"
            return (
                f"It is let in {end}{maker}, with scope {token.scope}{tracks}{home}.{held} "
                f"Of the {token.rate_per_minute} requests of this minute, the servers have reserved {taken}."
            )


def _shown(moment: datetime | None) -> str:
    return "" if moment is None else f"{moment:%Y-%m-%d %H:%M:%SZ}"
