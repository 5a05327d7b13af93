"""Creating and revoking API tokens, and letting a client in."""

from __future__ import annotations

from datetime import datetime

import structlog

from accessportal.audit.states import Draft
from accessportal.clients import policy, store
from accessportal.clients.rate import RateLimit
from accessportal.clients.states import DEFAULT_RATE, ApiToken, NewToken, NoSuchToken, Scope, TokenState
from accessportal.kernel.actors import Actor
from accessportal.kernel.clock import from_epoch, to_epoch
from accessportal.kernel.errors import Conflict, Unavailable

log = structlog.get_logger(__name__)

_rate_limit = RateLimit()


def create_token(
    *,
    name: str,
    scope: Scope,
    rate_per_minute: int = DEFAULT_RATE,
    expires_at: datetime | None = None,
    submission_id: str | None = None,
    actor: Actor,
    now: datetime,
) -> NewToken:
    """A token that opens the API within ``scope`` from now on, until ``expires_at`` if one is given.

    The answer holds its text, which is stored nowhere. ``submission_id`` is the once-only number of a form.

    :raises NotAllowed: unless the actor is an operator.
    :raises InvalidRequest: for ``name``, ``rate_per_minute`` or ``expires_at``.
    :raises Conflict: when the same form made a token before; its text can't be shown again.
    """
    policy.may_manage(actor).require()
    secret = policy.new_secret()
    token = ApiToken(
        token_id=policy.new_id(actor=actor, submission_id=submission_id),
        name=policy.check_name(name),
        scope=scope,
        rate_per_minute=policy.check_rate(rate_per_minute),
        created_by=actor.name,
        created_at=_whole(now),
        expires_at=policy.check_end(None if expires_at is None else _whole(expires_at), now=now),
    )
    data: dict[str, object] = {"name": token.name, "token_scope": scope.value, "rate_per_minute": token.rate_per_minute}
    if token.expires_at is not None:
        data["expires_at"] = to_epoch(token.expires_at)
    draft = Draft("token.created", subject=token.name, data=data)
    try:
        made = store.insert(token, secret_hash=policy.hash_of(secret), draft=draft, actor=actor, now=now)
    except store.Taken as error:
        first = _found(token.token_id)
        raise Conflict(
            f"This form was sent before and made the token “{first.name}”. Its text is shown once only: "
            "if you did not keep it, revoke that token and create another.",
            code="token_made_before",
            present=first,
        ) from error
    return NewToken(made, policy.text_of(made.token_id, secret))


def revoke_token(*, token_id: str, reason: str = "", actor: Actor, now: datetime) -> ApiToken:
    """The token opens nothing any more: every request that is authenticated after this is refused. Again: nothing changes.

    :raises NotAllowed: unless the actor is an operator.
    :raises NotFound: when there is no such token.
    :raises InvalidRequest: for a ``reason`` that is too long.
    """
    policy.may_manage(actor).require()
    data = {"reason": policy.check_reason(reason)} if reason.strip() else {}
    token = _found(token_id)
    if token.state(now) is TokenState.REVOKED:
        return token
    draft = Draft("token.revoked", subject=token.name, data=data)
    try:
        return store.revoke(token, at=_whole(now), draft=draft, actor=actor, now=now)
    except store.Overtaken:
        # Nothing but a revocation changes a token's version.
        return _found(token_id)


def authenticate(*, text: str, now: datetime) -> ApiToken:
    """The live token whose text this is, read anew; its last use is noted, at most once a minute.

    :raises TokenRefused: when there is none.
    :raises Unavailable: when the store did not answer; nobody is let in then.
    """
    token_id, secret = policy.parts_of(text)
    found = store.get(token_id)
    token, stored_hash = found if found is not None else (None, "")
    admitted = policy.admit(token, stored_hash=stored_hash, secret=secret, now=now)
    if policy.is_use_worth_noting(admitted, now):
        _note_use(admitted, now)
    return admitted


def claim_request(*, token: ApiToken, now: datetime) -> float:
    """Seconds to wait; 0.0: the request may go on, and counts as one of the token's in this minute."""
    return _rate_limit.claim(token, now=now)


def _whole(moment: datetime) -> datetime:
    """To the second, as it is stored: the record that an operation returns is the one that is read later."""
    return from_epoch(to_epoch(moment))


def _note_use(token: ApiToken, now: datetime) -> None:
    try:
        store.note_use(token.token_id, now=now)
    except Unavailable as error:
        log.warning("clients.use_not_noted", token_id=token.token_id, error=error.message)


def _found(token_id: str) -> ApiToken:
    found = store.get(token_id)
    if found is None:
        raise NoSuchToken
    return found[0]
