"""Whether an ID token is what it says: the checks of OpenID Connect Core 3.1.3.7, with nothing taken on trust."""

from __future__ import annotations

import hmac
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import timedelta
from typing import Any

import jwt

from accessportal.kernel.errors import NotAllowed

ALGORITHMS = ("RS256", "RS384", "RS512", "PS256", "PS384", "PS512", "ES256", "ES384", "ES512", "EdDSA")
"""Signatures that only the issuer can make. Never ``none``, and never HS…: its key would be one that we know, too."""
_LEEWAY = timedelta(seconds=60)
_REQUIRED = ("iss", "sub", "aud", "exp", "iat", "nonce")
_CODES: tuple[tuple[type[jwt.PyJWTError], str], ...] = (
    (jwt.ExpiredSignatureError, "token_expired"),
    (jwt.ImmatureSignatureError, "token_too_early"),
    (jwt.InvalidAudienceError, "wrong_audience"),
    (jwt.InvalidIssuerError, "wrong_issuer"),
    (jwt.MissingRequiredClaimError, "claim_missing"),
    (jwt.InvalidAlgorithmError, "wrong_algorithm"),
)
_REASONS = {
    "token_expired": "it is too old",
    "token_too_early": "it is from the future: the two clocks differ",
    "wrong_audience": "it was made for another program",
    "wrong_issuer": "it names another issuer",
    "wrong_nonce": "it belongs to another sign-in",
    "wrong_subject": "its two halves are about different people",
    "wrong_algorithm": "it is signed in a way that proves nothing",
    "unknown_key": "it is signed with a key that the issuer does not publish",
    "claim_missing": "something that must be in it is missing",
    "bad_signature": "its signature is not right",
}


@dataclass(frozen=True, slots=True)
class Expected:
    """What the token must say. ``algorithms`` are the signatures that the issuer announces."""

    issuer: str
    client_id: str
    nonce: str
    algorithms: Sequence[str]


class Refused(NotAllowed):
    """A sign-in that was refused after the issuer had answered. ``email`` is what the token said, proven or not."""

    def __init__(self, message: str, *, code: str, email: str = "") -> None:
        super().__init__(message, code=code)
        self.email = email


def read_id_token(token: str, *, keys: Mapping[str, Any], expected: Expected) -> dict[str, Any]:
    """Read ``token`` once its signature by one of ``keys`` (a JWK set) was checked, and that it was made for us, here and now. :raises
    Refused: with words that hold nothing of the token."""
    claims = _signed_claims(token, keys=keys, expected=expected)
    if not hmac.compare_digest(str(claims["nonce"]).encode(), expected.nonce.encode()):
        raise untrusted("wrong_nonce")
    _check_party(claims, expected.client_id)
    return claims


def _signed_claims(token: str, *, keys: Mapping[str, Any], expected: Expected) -> dict[str, Any]:
    allowed = [name for name in ALGORITHMS if name in expected.algorithms]
    try:
        if jwt.get_unverified_header(token).get("alg") not in allowed:
            raise untrusted("wrong_algorithm")
        claims: dict[str, Any] = jwt.decode(
            token,
            key=_key_for(token, keys),
            algorithms=allowed,
            audience=expected.client_id,
            issuer=expected.issuer,
            leeway=_LEEWAY,
            options={"require": list(_REQUIRED)},
        )
    except jwt.PyJWTError as error:
        code = next((code for kind, code in _CODES if isinstance(error, kind)), "bad_signature")
        raise untrusted(code) from error
    return claims


def _key_for(token: str, keys: Mapping[str, Any]) -> jwt.PyJWK:
    """The published key that the token names; the only one there is, for a token that names none."""
    usable = [key for key in jwt.PyJWKSet.from_dict(dict(keys)).keys if key.public_key_use in {None, "sig"}]
    kid = jwt.get_unverified_header(token).get("kid")
    fitting = [key for key in usable if kid is None or key.key_id == kid]
    if len(fitting) != 1:
        raise untrusted("unknown_key")
    return fitting[0]


def _check_party(claims: Mapping[str, Any], client_id: str) -> None:
    """A token for several programs must say that it was made for us."""
    is_shared = isinstance(claims["aud"], list) and len(claims["aud"]) > 1
    if claims.get("azp", None if is_shared else client_id) != client_id:
        raise untrusted("wrong_audience")


def untrusted(code: str) -> Refused:
    """The refusal for one of the reasons above."""
    return Refused(f"The answer of the sign-in service can't be trusted: {_REASONS[code]}.", code=code)
