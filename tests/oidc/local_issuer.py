"""An OpenID Connect issuer on this machine: strict as a good one, and wrong in one way at a time when a test says so."""

from __future__ import annotations

import base64
import contextlib
import enum
import hashlib
import hmac
import html
import json
import secrets
import threading
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import urlencode

import jwt
from cryptography.hazmat.primitives.asymmetric import rsa
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat
from werkzeug.serving import WSGIRequestHandler, make_server
from werkzeug.wrappers import Request, Response

CLIENT_ID = "access-portal"
CLIENT_SECRET = "a secret/with: odd+characters"
_KID = "key-1"
_LIFETIME_SECONDS = 300
# Longer than the portal waits, and an end in every case: who waits for the threads of servers must not wait for ever.
_SLOW_SECONDS = 120.0


class Fault(enum.StrEnum):
    """What is wrong with the issuer, or with the ID token that it gives."""

    NONE = ""
    WRONG_NONCE = "wrong nonce"
    NO_NONCE = "no nonce"
    WRONG_AUDIENCE = "wrong audience"
    SHARED_AUDIENCE = "several audiences and no authorized party"
    OTHER_PARTY = "another authorized party"
    WRONG_ISSUER = "wrong issuer"
    EXPIRED = "expired"
    TOO_EARLY = "issued in the future"
    NO_SUBJECT = "no subject"
    UNVERIFIED = "unverified e-mail"
    NO_EMAIL = "no e-mail"
    ALG_NONE = "no signature"
    HS256 = "signed with the public key as a shared secret"
    UNKNOWN_KEY = "unknown key"
    FORGED = "signed by somebody else under the issuer's key id"
    NO_TOKEN = "no ID token"
    GARBAGE = "not a token"
    DOWN = "down"
    NO_JSON = "a page instead of JSON"
    SLOW = "slow"
    OTHER_NAME = "discovery names another issuer"
    PLAIN_ENDPOINT = "an endpoint without HTTPS"
    WEAK_ALGORITHMS = "announces shared secrets alone"
    REDIRECTS = "sends our secret elsewhere"


@dataclass
class Account:
    """Somebody who can sign in there. ``email_verified`` is sent as it is."""

    email: str
    name: str
    subject: str
    email_verified: bool | str = True


@dataclass
class LocalIssuer:
    """``url`` is the issuer's name. Codes work once, for the client and address they were made for, with the PKCE proof."""

    url: str = ""
    fault: Fault = Fault.NONE
    accounts: dict[str, Account] = field(default_factory=dict)
    claims: dict[str, Any] = field(default_factory=dict)
    """Put into every ID token on top of the rest."""
    only_in_userinfo: list[str] = field(default_factory=list)
    """Claims that the ID token leaves out."""
    userinfo: dict[str, Any] = field(default_factory=dict)
    """Put into what the userinfo endpoint tells, on top of the rest."""
    has_userinfo: bool = True
    has_end_session: bool = True
    auth_methods: list[str] = field(default_factory=lambda: ["client_secret_basic", "client_secret_post"])
    seen: list[str] = field(default_factory=list)
    """Path of every request, in order."""
    released: threading.Event = field(default_factory=threading.Event)
    _codes: dict[str, dict[str, str]] = field(default_factory=dict)
    _access_tokens: dict[str, Account] = field(default_factory=dict)
    _key: rsa.RSAPrivateKey = field(default_factory=lambda: rsa.generate_private_key(public_exponent=65537, key_size=2048))
    _other_key: rsa.RSAPrivateKey = field(default_factory=lambda: rsa.generate_private_key(public_exponent=65537, key_size=2048))

    def know(self, email: str, name: str = "", *, subject: str = "", email_verified: bool | str = True) -> Account:
        account = Account(email, name, subject or f"subject of {email}", email_verified)
        self.accounts[email] = account
        return account

    def start_over(self) -> None:
        """As new, with the same address and keys."""
        self.fault, self.has_end_session, self.has_userinfo = Fault.NONE, True, True
        self.released.clear()
        self.auth_methods = ["client_secret_basic", "client_secret_post"]
        for kept in (self.accounts, self.claims, self.seen, self.only_in_userinfo, self.userinfo, self._codes, self._access_tokens):
            kept.clear()

    def __call__(self, environ: Any, start_response: Any) -> Any:
        request = Request(environ)
        self.seen.append(request.path)
        return self._answer(request)(environ, start_response)

    def _answer(self, request: Request) -> Response:
        pages = {
            "/.well-known/openid-configuration": self._discovery,
            "/authorize": self._authorize,
            "/login": self._log_in,
            "/token": self._token,
            "/jwks": self._jwks,
            "/userinfo": self._userinfo,
            "/logout": self._log_out,
        }
        if request.path not in pages:
            return Response(status=204 if request.path == "/favicon.ico" else 404)
        if request.path not in {"/authorize", "/login"}:
            match self.fault:
                case Fault.DOWN:
                    return Response("down", status=502)
                case Fault.NO_JSON:
                    return Response("<p>Hello", content_type="text/html")
                case Fault.SLOW:
                    self.released.wait(_SLOW_SECONDS)
        return pages[request.path](request)

    def _discovery(self, _: Request) -> Response:
        told: dict[str, Any] = {
            "issuer": "https://somebody.example" if self.fault is Fault.OTHER_NAME else self.url,
            "authorization_endpoint": f"{self.url}/authorize",
            "token_endpoint": "http://somewhere.example/token" if self.fault is Fault.PLAIN_ENDPOINT else f"{self.url}/token",
            "jwks_uri": f"{self.url}/jwks",
            "response_types_supported": ["code"],
            "subject_types_supported": ["public"],
            "id_token_signing_alg_values_supported": ["HS256", "none"]
            if self.fault is Fault.WEAK_ALGORITHMS
            else ["RS256", "HS256", "none"],
            "token_endpoint_auth_methods_supported": self.auth_methods,
        }
        if self.has_userinfo:
            told["userinfo_endpoint"] = f"{self.url}/userinfo"
        if self.has_end_session:
            told["end_session_endpoint"] = f"{self.url}/logout"
        return _json(told)

    def _authorize(self, request: Request) -> Response:
        """A form with the question who it is, and what was asked in hidden fields."""
        hidden = "".join(f'<input type="hidden" name="{html.escape(k)}" value="{html.escape(v)}">' for k, v in request.args.items())
        page = (
            '<!doctype html><html lang="en"><title>Issuer</title><h1>Issuer</h1>'
            f'<form method="post" action="/login">{hidden}<label>Account <input name="account"></label> <button>Continue</button>'
            "</form></html>"
        )
        return Response(page, content_type="text/html; charset=utf-8")

    def _log_in(self, request: Request) -> Response:
        asked = request.form.to_dict()
        back: dict[str, str] = {"state": asked.get("state", "")}
        if asked["account"] not in self.accounts:
            back["error"] = "access_denied"
        else:
            code = secrets.token_urlsafe(16)
            self._codes[code] = asked
            back["code"] = code
        return Response(status=302, headers={"Location": f"{asked['redirect_uri']}?{urlencode(back)}"})

    def _token(self, request: Request) -> Response:
        if self.fault is Fault.REDIRECTS:
            return Response(status=307, headers={"Location": f"{self.url}/elsewhere"})
        form = request.form
        if not self._is_the_client(request):
            return _json({"error": "invalid_client"}, status=401)
        asked = self._codes.pop(form.get("code", ""), None)
        digest = base64.urlsafe_b64encode(hashlib.sha256(form.get("code_verifier", "").encode()).digest()).rstrip(b"=").decode()
        is_right = (
            asked is not None
            and asked["code_challenge_method"] == "S256"
            and asked["code_challenge"] == digest
            and asked["redirect_uri"] == form.get("redirect_uri")
            and "openid" in asked["scope"].split()
        )
        if asked is None or not is_right:
            return _json({"error": "invalid_grant"}, status=400)
        told = {"access_token": secrets.token_urlsafe(16), "token_type": "Bearer", "expires_in": _LIFETIME_SECONDS}
        self._access_tokens[str(told["access_token"])] = self.accounts[asked["account"]]
        if self.fault is not Fault.NO_TOKEN:
            told["id_token"] = self._id_token(self.accounts[asked["account"]], asked)
        return _json(told)

    def _is_the_client(self, request: Request) -> bool:
        if request.authorization is not None:
            told = (request.authorization.username, request.authorization.password)
            return "client_secret_basic" in self.auth_methods and told == (CLIENT_ID, "a+secret%2Fwith%3A+odd%2Bcharacters")
        told = (request.form.get("client_id"), request.form.get("client_secret"))
        return "client_secret_post" in self.auth_methods and told == (CLIENT_ID, CLIENT_SECRET)

    def _id_token(self, account: Account, asked: dict[str, str]) -> str:
        now = int(time.time())
        claims: dict[str, Any] = {
            "iss": self.url,
            "sub": account.subject,
            "aud": CLIENT_ID,
            "iat": now,
            "exp": now + _LIFETIME_SECONDS,
            "nonce": asked["nonce"],
            **_about(account),
        }
        self._spoil(claims, now)
        whole = claims | self.claims
        return self._signed({name: value for name, value in whole.items() if name not in self.only_in_userinfo})

    def _userinfo(self, request: Request) -> Response:
        scheme, _, token = request.headers.get("Authorization", "").partition(" ")
        if scheme != "Bearer" or token not in self._access_tokens:
            return _json({"error": "invalid_token"}, status=401)
        account = self._access_tokens[token]
        return _json({"sub": account.subject, **_about(account), **self.userinfo})

    def _spoil(self, claims: dict[str, Any], now: int) -> None:
        changes: dict[Fault, dict[str, Any]] = {
            Fault.WRONG_NONCE: {"nonce": "of-another-sign-in"},
            Fault.WRONG_AUDIENCE: {"aud": "another-program"},
            Fault.SHARED_AUDIENCE: {"aud": [CLIENT_ID, "another-program"]},
            Fault.OTHER_PARTY: {"azp": "another-program"},
            Fault.WRONG_ISSUER: {"iss": "https://another.example"},
            Fault.EXPIRED: {"iat": now - 3600, "exp": now - 120},
            Fault.TOO_EARLY: {"iat": now + 3600, "exp": now + 7200},
            Fault.UNVERIFIED: {"email_verified": False},
        }
        claims.update(changes.get(self.fault, {}))
        for fault, name in ((Fault.NO_NONCE, "nonce"), (Fault.NO_EMAIL, "email"), (Fault.NO_SUBJECT, "sub")):
            if self.fault is fault:
                del claims[name]

    def _signed(self, claims: dict[str, Any]) -> str:
        match self.fault:
            case Fault.GARBAGE:
                return "not.a.token"
            case Fault.ALG_NONE:
                return jwt.encode(claims, None, algorithm="none")  # type: ignore[arg-type]  # what a forger would send
            case Fault.HS256:
                return _signed_with_public_key(claims, self._key)
            case Fault.FORGED:
                return jwt.encode(claims, self._other_key, algorithm="RS256", headers={"kid": _KID})
            case Fault.UNKNOWN_KEY:
                return jwt.encode(claims, self._other_key, algorithm="RS256", headers={"kid": "key-2"})
            case _:
                return jwt.encode(claims, self._key, algorithm="RS256", headers={"kid": _KID})

    def _jwks(self, _: Request) -> Response:
        public = json.loads(jwt.algorithms.RSAAlgorithm.to_jwk(self._key.public_key()))
        return _json({"keys": [{**public, "kid": _KID, "use": "sig", "alg": "RS256"}]})

    def _log_out(self, request: Request) -> Response:
        return Response(status=302, headers={"Location": request.args["post_logout_redirect_uri"]})


def _about(account: Account) -> dict[str, Any]:
    return {"email": account.email, "email_verified": account.email_verified, "name": account.name}


def _signed_with_public_key(claims: dict[str, Any], key: rsa.RSAPrivateKey) -> str:
    """By hand: no library does this any more."""
    public = key.public_key().public_bytes(Encoding.PEM, PublicFormat.SubjectPublicKeyInfo)
    parts = [_encoded({"alg": "HS256", "typ": "JWT", "kid": _KID}), _encoded(claims)]
    signature = hmac.new(public, ".".join(parts).encode(), hashlib.sha256).digest()
    return ".".join([*parts, base64.urlsafe_b64encode(signature).rstrip(b"=").decode()])


def _encoded(part: dict[str, Any]) -> str:
    return base64.urlsafe_b64encode(json.dumps(part).encode()).rstrip(b"=").decode()


def _json(value: dict[str, Any], *, status: int = 200) -> Response:
    return Response(json.dumps(value), status=status, content_type="application/json")


class _Quiet(WSGIRequestHandler):
    def log(self, type: str, message: str, *args: object) -> None:  # noqa: A002  # the base class names it so
        """What is asked is in ``LocalIssuer.seen``."""


@contextlib.contextmanager
def running() -> Iterator[LocalIssuer]:
    """An issuer that answers at a free port of 127.0.0.1 until the end."""
    issuer = LocalIssuer()
    server = make_server("127.0.0.1", 0, issuer, threaded=True, request_handler=_Quiet)
    issuer.url = f"http://127.0.0.1:{server.server_port}"
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        yield issuer
    finally:
        issuer.released.set()
        server.shutdown()
        thread.join()
        server.server_close()
