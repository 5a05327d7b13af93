"""Pure decisions about API tokens: their text, what a new one may be, who may manage them, and whether one is let in."""

from __future__ import annotations

import hashlib
import hmac
import re
import secrets
from collections.abc import Collection
from datetime import datetime, timedelta

from accessportal.kernel.actors import Actor
from accessportal.kernel.decisions import Decision, allow, refuse
from accessportal.kernel.errors import InvalidRequest
from accessportal.kernel.lasting import operators_right, rule_on_effect
from accessportal.kernel.moments import is_recent
from accessportal.tokens.states import LONGEST_NAME, MOST_HELD, MOST_RATE, MOST_TRACKS, ApiToken, Scope, TokenRefused, TokenState

ID_LENGTH = 12
_LONGEST_TRACK = 200
_ID_ALPHABET = "abcdefghijklmnopqrstuvwxyz0123456789"
_SECRET_BYTES = 32
# 43 characters are 32 bytes in unpadded base64. The secret may hold "_" itself: the id can't.
_TEXT = re.compile(rf"apt_([a-z0-9]{{{ID_LENGTH}}})_([A-Za-z0-9_-]{{43}})")
# The last use is worth one write a minute, not one a request.
USE_NOTED_EVERY_SECONDS = 60
WINDOW_SECONDS = 60
_BLOCKS_OF_A_WINDOW = 20


def may_manage(actor: Actor) -> Decision:
    """Whether ``actor`` may create and revoke tokens."""
    if actor.is_operator or actor.is_system:
        return allow("operators may")
    return refuse("Only operators may create and revoke API tokens.", code="operators_only")


def end_of_new(actor: Actor, expires_at: datetime | None) -> datetime | None:
    """When the token ends that ``actor`` makes and wants to end at ``expires_at``: never later than the actor's own right."""
    ruling = rule_on_effect(operators_right(actor), ends_at=expires_at, can_end=True)
    ruling.decision.require()
    return ruling.ends_at


def may_act_for(token: ApiToken, track: str) -> Decision:
    """Whether ``token`` may act for ``track``."""
    if not token.tracks or any(one == track or (one.endswith("*") and track.startswith(one[:-1])) for one in token.tracks):
        return allow("one of its tracks")
    return refuse(
        "This token may not act for this track. Use one of its own, or ask an operator for another token.", code="TRACK_NOT_ALLOWED"
    )


def may_see(actor: Actor) -> Decision:
    """Whether ``actor`` may see which tokens there are. Their secrets nobody can see."""
    if actor.reads_everything:
        return allow("operators and auditors may")
    return refuse("Only operators and auditors may see API tokens.", code="operators_and_auditors_only")


def check_name(name: str) -> str:
    """:raises InvalidRequest: unless it is 1 to 80 visible characters; spaces around it do not count."""
    name = name.strip()
    if not name:
        raise InvalidRequest(f"The name is missing: give 1 to {LONGEST_NAME} characters.", code="name_missing", field="name")
    if len(name) > LONGEST_NAME or not name.isprintable():
        message = f"The name is too long or holds control characters: give 1 to {LONGEST_NAME} visible characters."
        raise InvalidRequest(message, code="name_unusable", field="name")
    return name


def check_rate(rate_per_minute: int) -> int:
    """:raises InvalidRequest: unless it is 1 to 100,000 requests a minute."""
    if not 1 <= rate_per_minute <= MOST_RATE:
        message = f"A token may ask 1 to {MOST_RATE:,} times a minute; {rate_per_minute:,} is not among these."
        raise InvalidRequest(message, code="rate_out_of_range", field="rate_per_minute")
    return rate_per_minute


def check_tracks(tracks: Collection[str], scope: Scope) -> tuple[str, ...]:
    """:raises InvalidRequest: for too many, one that no track can be called, and for any scope but track."""
    wanted = tuple(sorted({track.strip() for track in tracks if track.strip()}))
    if wanted and scope is not Scope.TRACK:
        message = f"Tracks bound a token of scope track alone, not one of scope {scope}: choose scope track, or name no tracks."
        raise InvalidRequest(message, code="tracks_with_admin", field="tracks")
    if len(wanted) > MOST_TRACKS:
        raise InvalidRequest(
            f"Name at most {MOST_TRACKS} tracks, or the beginning of theirs and *.", code="too_many_tracks", field="tracks"
        )
    for track in wanted:
        if len(track) > _LONGEST_TRACK or not track.isprintable() or track == "*":
            message = f"A track has 1 to {_LONGEST_TRACK} visible characters; with * at the end it means all that begin so."
            raise InvalidRequest(message, code="track_unusable", field="tracks")
    return wanted


def check_most_held(most_held: int | None, scope: Scope) -> int | None:
    """:raises InvalidRequest: unless it is 1 to 1,000, or not given; and for a scope that lends no sandboxes."""
    if most_held is not None and scope not in (Scope.TRACK, Scope.ADMIN):
        message = f"A token of scope {scope} holds no sandboxes: leave their number out, or choose scope track or admin."
        raise InvalidRequest(message, code="most_held_without_pool", field="most_held")
    if most_held is not None and not 1 <= most_held <= MOST_HELD:
        message = f"A token may hold 1 to {MOST_HELD:,} sandboxes at a time; {most_held:,} is not among these."
        raise InvalidRequest(message, code="most_held_out_of_range", field="most_held")
    return most_held


def check_home(home_scope: str, scope: Scope) -> str:
    """:raises InvalidRequest: unless there is one for the scopes that it bounds, and none for the others."""
    if scope.has_home and not home_scope:
        message = f"A token of scope {scope} needs a home scope, which it does not leave: tenant:acme, or global for everything."
        raise InvalidRequest(message, code="home_scope_missing", field="home_scope")
    if home_scope and not scope.has_home:
        message = f"A home scope bounds tokens of scope authz:check and authz:write, not of scope {scope}: leave it out."
        raise InvalidRequest(message, code="home_scope_unused", field="home_scope")
    return str(home_scope)


def require_maker(token: ApiToken, *, is_operator: bool) -> None:
    """:raises TokenRefused: unless whoever made the token may make one still: what they gave ends with their right."""
    if not is_operator:
        message = "Whoever made this API token is no operator any more, so it opens nothing. Ask an operator for another one."
        raise TokenRefused(message, code="token_orphaned")


def check_end(expires_at: datetime | None, *, now: datetime) -> datetime | None:
    """:raises InvalidRequest: when the token would be over before it begins."""
    if expires_at is not None and expires_at <= now:
        message = "The end lies in the past: give a later one, or none for a token that counts until it is revoked."
        raise InvalidRequest(message, code="end_in_the_past", field="expires_at")
    return expires_at


def new_id(*, actor: Actor, submission_id: str | None) -> str:
    """The public half. The same form sent twice by the same person gives the same one, so that it makes one token."""
    if submission_id is None:
        return "".join(secrets.choice(_ID_ALPHABET) for _ in range(ID_LENGTH))
    number = int.from_bytes(hashlib.sha256(f"{len(actor.name)}:{actor.name}:{submission_id}".encode()).digest())
    letters = []
    for _ in range(ID_LENGTH):
        number, place = divmod(number, len(_ID_ALPHABET))
        letters.append(_ID_ALPHABET[place])
    return "".join(letters)


def new_secret() -> str:
    """256 random bits."""
    return secrets.token_urlsafe(_SECRET_BYTES)


def text_of(token_id: str, secret: str) -> str:
    """What the client sends. The first letters let scanners of code and logs find a token that has strayed."""
    return f"apt_{token_id}_{secret}"


def parts_of(text: str) -> tuple[str, str]:
    """Split the text of a token into id and secret. :raises TokenRefused: when it is none."""
    found = _TEXT.fullmatch(text)
    if found is None:
        raise _invalid()
    return found[1], found[2]


def hash_of(secret: str) -> str:
    """What is stored. A fast hash will do: nobody guesses 256 random bits, however fast the guesses are checked."""
    return hashlib.sha256(secret.encode()).hexdigest()


def check_of(stored_hash: str) -> str:
    """What tells that the stored hash is another one, and nothing of the secret, which nobody guesses."""
    return hashlib.sha256(stored_hash.encode()).hexdigest()[:32]


def admit(token: ApiToken | None, *, stored_hash: str, secret: str, now: datetime) -> ApiToken:
    """Return the token, if the secret is its own and it is live. :raises TokenRefused: an unknown id and a wrong secret are told alike."""
    is_right = hmac.compare_digest(stored_hash, hash_of(secret))
    if token is None or not is_right:
        raise _invalid()
    match token.state(now):
        case TokenState.REVOKED:
            raise TokenRefused("This API token was revoked. Ask an operator for another one.", code="token_revoked")
        case TokenState.EXPIRED:
            raise TokenRefused("The time of this API token is over. Ask an operator for another one.", code="token_expired")
        case TokenState.LIVE:
            return token


def is_use_worth_noting(token: ApiToken, now: datetime) -> bool:
    used_at = token.last_used_at
    return used_at is None or not is_recent(used_at, now=now, within=timedelta(seconds=USE_NOTED_EVERY_SECONDS))


def window_of(now: datetime) -> int:
    """The minute that ``now`` lies in, by its first second (epoch seconds)."""
    return int(now.timestamp()) // WINDOW_SECONDS * WINDOW_SECONDS


def block_of(rate_per_minute: int) -> int:
    """How many requests a process takes at once out of what all processes share: one write for each block."""
    return max(1, rate_per_minute // _BLOCKS_OF_A_WINDOW)


def _invalid() -> TokenRefused:
    return TokenRefused("This is not an API token that is known here.", code="invalid_token")
