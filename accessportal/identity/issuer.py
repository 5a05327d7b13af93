"""Talking with the OpenID Connect issuer. Every call has an end, and an issuer that fails is ``Unavailable``, never a guess."""

from __future__ import annotations

import json
from dataclasses import dataclass
from http import HTTPStatus
from typing import Any
from urllib.parse import quote_plus, urlencode

import requests
import urllib3
from django.core.cache import cache

from accessportal.identity.tokens import ALGORITHMS, Refused
from accessportal.kernel.addresses import is_safe_address
from accessportal.kernel.errors import Unavailable

_CONNECT_AND_READ_SECONDS = (3, 5)
_MOST_BYTES = 1_000_000
_KEPT_SECONDS = 300
# A stranger who asks again and again for a sign-in must not have us wait for a dead issuer each time.
_DOWN_SECONDS = 5


@dataclass(frozen=True, slots=True)
class Discovery:
    """What the issuer publishes about itself. ``end_session_endpoint`` and ``userinfo_endpoint`` are empty where it has none."""

    issuer: str
    authorization_endpoint: str
    token_endpoint: str
    jwks_uri: str
    end_session_endpoint: str
    userinfo_endpoint: str
    token_auth_methods: tuple[str, ...]
    algorithms: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class _Down:
    """How the issuer failed a moment ago."""

    message: str
    code: str


@dataclass(frozen=True, slots=True)
class Client:
    """What the issuer knows us as."""

    client_id: str
    secret: str
    redirect_uri: str


def discover(issuer: str) -> Discovery:
    """Return what ``issuer`` publishes, as known for five minutes."""
    key = f"issuer:{issuer}"
    known = cache.get(key)
    if isinstance(known, _Down):
        raise Unavailable(known.message, code=known.code)
    if not isinstance(known, Discovery):
        try:
            known = _read_discovery(issuer)
        except Unavailable as error:
            cache.set(key, _Down(error.message, error.code), _DOWN_SECONDS)
            raise
        cache.set(key, known, _KEPT_SECONDS)
    return known


@dataclass(frozen=True, slots=True)
class Tokens:
    """``access_token`` is good for the userinfo endpoint alone, is used at once and kept nowhere; empty where none was given."""

    id_token: str
    access_token: str


def fetch_tokens(found: Discovery, client: Client, *, code: str, verifier: str) -> Tokens:
    """Fetch what the issuer gives for ``code`` and the proof of who asked for it (PKCE). :raises Refused: when it does not accept the
    code."""
    form = {"grant_type": "authorization_code", "code": code, "redirect_uri": client.redirect_uri, "code_verifier": verifier}
    basic: tuple[str, str] | None = None
    if "client_secret_post" in found.token_auth_methods:
        form |= {"client_id": client.client_id, "client_secret": client.secret}
    else:
        # RFC 6749, 2.3.1: both parts are form-encoded first.
        basic = (quote_plus(client.client_id), quote_plus(client.secret))
    status, answer = _call("POST", found.token_endpoint, data=form, auth=basic)
    if status == HTTPStatus.BAD_REQUEST and answer.get("error") == "invalid_grant":
        raise Refused("The sign-in service did not accept this sign-in: it was used already, or took too long.", code="code_refused")
    if status != HTTPStatus.OK:
        raise _unusable(f"its token endpoint answered {status} ({str(answer.get('error', ''))[:80]})")
    token = answer.get("id_token")
    if not isinstance(token, str):
        raise Refused("The sign-in service did not say who you are.", code="id_token_missing")
    return Tokens(id_token=token, access_token=str(answer.get("access_token") or ""))


def fetch_userinfo(found: Discovery, access_token: str) -> dict[str, Any]:
    """Fetch what the issuer tells of whom ``access_token`` is for. Whom it tells of, the caller must check."""
    if not found.userinfo_endpoint:
        raise _unusable("it publishes no userinfo_endpoint, and PORTAL_OIDC_USERINFO is set")
    status, told = _call("GET", found.userinfo_endpoint, bearer=access_token)
    if status != HTTPStatus.OK:
        raise _unusable(f"its userinfo endpoint answered {status}")
    return told


def fetch_keys(found: Discovery) -> dict[str, Any]:
    """Read the JWK set anew: a key that the issuer took back counts no more."""
    status, keys = _call("GET", found.jwks_uri)
    if status != HTTPStatus.OK or not isinstance(keys.get("keys"), list) or not keys["keys"]:
        raise _unusable(f"its keys can't be read ({status})")
    return keys


def end_session_address(found: Discovery, *, client_id: str, back_to: str) -> str:
    """Where the browser signs out of the issuer too, coming ``back_to`` us; empty where the issuer has no such page."""
    if not found.end_session_endpoint:
        return ""
    separator = "&" if "?" in found.end_session_endpoint else "?"
    return f"{found.end_session_endpoint}{separator}{urlencode({'client_id': client_id, 'post_logout_redirect_uri': back_to})}"


def _read_discovery(issuer: str) -> Discovery:
    status, told = _call("GET", f"{issuer.rstrip('/')}/.well-known/openid-configuration")
    if status != HTTPStatus.OK:
        raise _unusable(f"its discovery answered {status}")
    if told.get("issuer") != issuer:
        raise _unusable(f"it calls itself {str(told.get('issuer'))[:200]!r}, PORTAL_OIDC_ISSUER says {issuer!r}")
    announced = told.get("id_token_signing_alg_values_supported", ["RS256"])
    algorithms = tuple(name for name in ALGORITHMS if name in announced)
    if not algorithms:
        raise _unusable("it signs its tokens in no way that proves something")
    return Discovery(
        issuer=issuer,
        authorization_endpoint=_endpoint(told, "authorization_endpoint"),
        token_endpoint=_endpoint(told, "token_endpoint"),
        jwks_uri=_endpoint(told, "jwks_uri"),
        end_session_endpoint=_endpoint(told, "end_session_endpoint") if told.get("end_session_endpoint") else "",
        userinfo_endpoint=_endpoint(told, "userinfo_endpoint") if told.get("userinfo_endpoint") else "",
        token_auth_methods=tuple(told.get("token_endpoint_auth_methods_supported") or ("client_secret_basic",)),
        algorithms=algorithms,
    )


def _endpoint(told: dict[str, Any], name: str) -> str:
    address = told.get(name)
    if not isinstance(address, str) or not is_safe_address(address):
        raise _unusable(f"its {name} is not an https address")
    return address


def _call(
    method: str, address: str, *, auth: tuple[str, str] | None = None, bearer: str = "", **options: Any
) -> tuple[int, dict[str, Any]]:
    """Status and JSON object. Redirects are not followed: they would carry our secret to somebody else."""
    try:
        with (
            requests.Session() as session,
            session.request(
                method,
                address,
                timeout=_CONNECT_AND_READ_SECONDS,
                allow_redirects=False,
                stream=True,
                headers={"Accept": "application/json", **({"Authorization": f"Bearer {bearer}"} if bearer else {})},
                # Without any, a ~/.netrc that names the host, or a default, would give its own password away.
                auth=auth or (lambda asked: asked),
                **options,
            ) as response,
        ):
            # At most so much is read, whatever the answer says of its length.
            body = response.raw.read(_MOST_BYTES, decode_content=True)
            status = response.status_code
    except (requests.RequestException, urllib3.exceptions.HTTPError) as error:
        raise Unavailable(f"The sign-in service did not answer ({type(error).__name__}).", code="issuer_unavailable") from error
    if status >= HTTPStatus.INTERNAL_SERVER_ERROR:
        raise Unavailable(f"The sign-in service answered {status}.", code="issuer_unavailable")
    return status, _json_object(body, status)


def _json_object(body: bytes, status: int) -> dict[str, Any]:
    try:
        found = json.loads(body)
    except ValueError as error:
        raise _unusable(f"its answer ({status}) is not JSON") from error
    if not isinstance(found, dict):
        raise _unusable(f"its answer ({status}) is not a JSON object")
    return found


def _unusable(why: str) -> Unavailable:
    """The issuer, or what we were told of it, is not set up right. The reason is for the log: it may name internal addresses."""
    return Unavailable(f"The sign-in service can't be used: {why}.", code="issuer_unusable")
