"""Creating and revoking API tokens, and letting a client in."""

from __future__ import annotations

import hmac
from collections.abc import Callable, Collection
from datetime import datetime

import structlog

from accessportal.audit.states import Draft
from accessportal.kernel.actors import Actor
from accessportal.kernel.clock import from_epoch, to_epoch
from accessportal.kernel.errors import Conflict, Unavailable
from accessportal.kernel.pages import Unreadable, every
from accessportal.kernel.texts import check_reason
from accessportal.store.reading import Beside
from accessportal.store.transactions import Overtaken
from accessportal.tokens import policy, store
from accessportal.tokens.guessing import GuessLimit, KnownTokens
from accessportal.tokens.queries import find_token
from accessportal.tokens.rate import RateLimit
from accessportal.tokens.states import DEFAULT_RATE, ApiToken, NewToken, RateLimited, Scope, TokenRefused, TokenState

log = structlog.get_logger(__name__)

_PAGE = 100

_rate_limit = RateLimit()
_guesses = GuessLimit()
_known = KnownTokens()
# Tokens that this process has let in, with the hash of their secret: no more than operators have made.
_let_in: dict[str, str] = {}


def create_token(
    *,
    name: str,
    scope: Scope,
    rate_per_minute: int = DEFAULT_RATE,
    expires_at: datetime | None = None,
    tracks: Collection[str] = (),
    most_held: int | None = None,
    home_scope: str = "",
    submission_id: str | None = None,
    actor: Actor,
    now: datetime,
) -> NewToken:
    """Create a token within ``scope`` until ``expires_at``, and never longer than the actor is an operator. The answer holds its text,
    which is stored nowhere. ``home_scope`` is one that the room of approvals has read. :raises Conflict: when the form ``submission_id``
    made a token before."""
    policy.may_manage(actor).require()
    wanted_end = policy.check_end(None if expires_at is None else _whole(expires_at), now=now)
    secret = policy.new_secret()
    token = ApiToken(
        token_id=policy.new_id(actor=actor, submission_id=submission_id),
        name=policy.check_name(name),
        scope=scope,
        rate_per_minute=policy.check_rate(rate_per_minute),
        created_by=actor.name,
        created_at=_whole(now),
        expires_at=policy.end_of_new(actor, wanted_end),
        tracks=policy.check_tracks(tracks, scope),
        most_held=policy.check_most_held(most_held, scope),
        home_scope=policy.check_home(home_scope, scope),
    )
    data: dict[str, object] = {"name": token.name, "token_scope": scope.value, "rate_per_minute": token.rate_per_minute}
    data["check"] = policy.check_of(policy.hash_of(secret))
    if token.expires_at is not None:
        data["expires_at"] = to_epoch(token.expires_at)
    if token.tracks:
        data["tracks"] = list(token.tracks)
    if token.most_held is not None:
        data["most_held"] = token.most_held
    if token.home_scope:
        data["home_scope"] = token.home_scope
    draft = Draft("token.created", subject=token.name, data=data)
    try:
        made = store.insert(token, secret_hash=policy.hash_of(secret), draft=draft, actor=actor, now=now)
    except Overtaken as error:
        first = find_token(token_id=token.token_id)
        raise Conflict(
            f"This form was sent before and made the token “{first.name}”. Its text is shown once only: "
            "if you did not keep it, revoke that token and create another.",
            code="token_made_before",
            present=first,
        ) from error
    return NewToken(made, policy.text_of(made.token_id, secret))


def revoke_token(*, token_id: str, reason: str = "", actor: Actor, now: datetime) -> ApiToken:
    """Revoke the token: every request that is authenticated after this is refused. Again: nothing changes."""
    policy.may_manage(actor).require()
    data = {"reason": check_reason(reason)} if reason.strip() else {}
    token = find_token(token_id=token_id)
    if token.state(now) is TokenState.REVOKED:
        return token
    draft = Draft("token.revoked", subject=token.name, data=data)
    try:
        return store.revoke(token, at=_whole(now), draft=draft, actor=actor, now=now)
    except Overtaken:
        # Nothing but a revocation changes a token's version.
        return find_token(token_id=token_id)


def revoke_every_token(*, made_before: datetime, keep: Collection[str], reason: str, actor: Actor, now: datetime) -> tuple[str, ...]:
    """Revoke every token that was made before, but for those to ``keep``; return the ids. Without one of those to keep nothing is revoked.
    :raises Unavailable: at the end, naming one that can't be read."""
    policy.may_manage(actor).require()
    for token_id in keep:
        find_token(token_id=token_id)
    # Read to the end first: each revocation takes one out of the list.
    unreadable: list[Unreadable] = []
    listed = list(every(lambda cursor: store.page(with_revoked=False, cursor=cursor, limit=_PAGE), past=unreadable.append))
    doomed = [token.token_id for token in listed if token.created_at < made_before and token.token_id not in keep]
    for token_id in doomed:
        revoke_token(token_id=token_id, reason=reason, actor=actor, now=now)
    if unreadable:
        raise unreadable[0].error()
    return tuple(doomed)


def authenticate(*, text: str, address: str = "", beside: Beside | None = None, now: datetime) -> ApiToken:
    """Return the live token whose text this is, read anew (with what is ``beside``, if it was let in before), and note its use once a
    minute. :raises TokenRefused: when there is none. :raises RateLimited: for one more wrong text from an ``address`` with too many in this
    minute."""
    seconds = _guesses.wait(address, now=now)
    if seconds > 0 and not _known.holds(text, now=now):
        raise RateLimited("Too many texts that are no token came from this address.", seconds)
    try:
        return _authenticated(text, beside, now)
    except TokenRefused:
        _guesses.note(address, now=now)
        raise


def _authenticated(text: str, beside: Beside | None, now: datetime) -> ApiToken:
    token_id, secret = policy.parts_of(text)
    # What is refused costs no more than the read of a token.
    is_familiar = hmac.compare_digest(_let_in.get(token_id, ""), policy.hash_of(secret))
    found = store.get_with(token_id, beside) if beside is not None and is_familiar else store.get(token_id)
    token, stored_hash = found if found is not None else (None, "")
    try:
        admitted = policy.admit(token, stored_hash=stored_hash, secret=secret, now=now)
    except TokenRefused:
        _let_in.pop(token_id, None)
        raise
    _let_in[token_id] = stored_hash
    if policy.is_use_worth_noting(admitted, now):
        _note_use(admitted, now)
    return admitted


def claim_request(*, token: ApiToken, now: datetime) -> float:
    """Seconds to wait; 0.0: the request may go on, and counts as one of the token's in this minute."""
    return _rate_limit.claim(token, now=now)


def require_maker(*, token: ApiToken, is_operator: Callable[[str], bool]) -> None:
    """Require that whoever made the token may make one still, which ``is_operator`` says of an address. :raises TokenRefused: else."""
    policy.require_maker(token, is_operator=token.is_by_portal or is_operator(token.created_by))


def require_track(*, token: ApiToken, track: str) -> None:
    """:raises NotAllowed: ``TRACK_NOT_ALLOWED``, when the token may not act for the track."""
    policy.may_act_for(token, track).require()


def _whole(moment: datetime) -> datetime:
    """To the second, as it is stored: the record that an operation returns is the one that is read later."""
    return from_epoch(to_epoch(moment))


def _note_use(token: ApiToken, now: datetime) -> None:
    try:
        store.note_use(token.token_id, now=now)
    except Unavailable as error:
        log.warning("clients.use_not_noted", token_id=token.token_id, error=error.message)
