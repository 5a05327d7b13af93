"""The company's OpenID Connect issuer, as a provider of django-allauth.

allauth keeps the state in the session, makes the PKCE pair and sends people to and fro. Its own ``openid_connect`` provider is
not used: it checks neither a nonce nor, after a code exchange, the signature, and it believes ``userinfo`` over the ID token.
"""

from __future__ import annotations

import base64
import hashlib
from dataclasses import asdict
from typing import Any

from allauth.socialaccount.models import SocialToken
from allauth.socialaccount.providers.base import AuthProcess, ProviderAccount
from allauth.socialaccount.providers.oauth2.client import OAuth2Client
from allauth.socialaccount.providers.oauth2.provider import OAuth2Provider
from allauth.socialaccount.providers.oauth2.views import OAuth2Adapter
from django.conf import settings
from django.contrib.auth import REDIRECT_FIELD_NAME
from django.http import HttpRequest
from django.urls import reverse
from django.utils.http import url_has_allowed_host_and_scheme

from accessportal.identity import claims, issuer
from accessportal.identity.tokens import Expected, read_id_token

PROVIDER_ID = "issuer"


def safe_next(request: HttpRequest) -> str:
    """Where the page that was asked for is, when it is one of ours; empty otherwise."""
    wanted = request.GET.get(REDIRECT_FIELD_NAME, "")
    is_ours = url_has_allowed_host_and_scheme(wanted, allowed_hosts={request.get_host()}, require_https=request.is_secure())
    return wanted if is_ours else ""


def nonce_for(code_verifier: str) -> str:
    """Make the nonce of the sign-in that ``code_verifier`` belongs to: it binds the ID token to the session that began, and tells the
    issuer nothing of the verifier."""
    return base64.urlsafe_b64encode(hashlib.sha256(f"nonce {code_verifier}".encode()).digest()).rstrip(b"=").decode()


class IssuerClient(OAuth2Client):  # type: ignore[misc]  # allauth is not typed
    def get_redirect_url(self, authorization_url: str, scope: list[str], extra_params: dict[str, Any]) -> str:
        """An authorization endpoint may have a query of its own (OAuth 2.0, 3.1)."""
        query: str = super().get_redirect_url("", scope, extra_params).removeprefix("?")
        return f"{authorization_url}{'&' if '?' in authorization_url else '?'}{query}"


class IssuerAdapter(OAuth2Adapter):  # type: ignore[misc]  # allauth is not typed
    """One sign-in, from the way there to what the issuer says when it is back."""

    provider_id = PROVIDER_ID
    client_class = IssuerClient

    _nonce = ""

    @property
    def authorize_url(self) -> str:
        return self._discovery.authorization_endpoint

    @property
    def access_token_url(self) -> str:
        return self._discovery.token_endpoint

    @property
    def _discovery(self) -> issuer.Discovery:
        return issuer.discover(settings.OIDC_ISSUER)

    def get_callback_url(self, request: HttpRequest, app: object) -> str:
        return callback_address(request)

    def get_access_token_data(
        self, request: HttpRequest, app: Any, client: OAuth2Client, pkce_code_verifier: str | None = None
    ) -> dict[str, str]:
        verifier = pkce_code_verifier or ""
        self._nonce = nonce_for(verifier)
        portal = issuer.Client(app.client_id, app.secret, client.callback_url)
        return asdict(issuer.fetch_tokens(self._discovery, portal, code=request.GET["code"], verifier=verifier))

    def parse_token(self, data: dict[str, str]) -> SocialToken:
        """What allauth would keep. Nothing is ever asked with the access token after this sign-in."""
        return SocialToken(token="")

    def complete_login(self, request: HttpRequest, app: Any, token: SocialToken, *, response: dict[str, str], **_: Any) -> Any:
        found = self._discovery
        expected = Expected(issuer=found.issuer, client_id=app.client_id, nonce=self._nonce, algorithms=found.algorithms)
        told, reading = read_id_token(response["id_token"], keys=issuer.fetch_keys(found), expected=expected), _reading()
        if settings.OIDC_USERINFO and not claims.is_whole(told, reading):
            told = claims.completed(told, issuer.fetch_userinfo(found, response["access_token"]), reading)
        return self.get_provider().sociallogin_from_response(request, claims.prove(told, reading))


class IssuerProvider(OAuth2Provider):  # type: ignore[misc]  # allauth is not typed
    id = PROVIDER_ID
    name = "OpenID Connect"
    account_class = ProviderAccount
    oauth2_adapter_class = IssuerAdapter
    pkce_enabled_default = True

    def get_login_url(self, request: HttpRequest, **_: Any) -> str:
        return reverse("sign_in_start")

    def get_callback_url(self) -> str:
        return reverse("sign_in_callback")

    def get_default_scope(self) -> list[str]:
        return ["openid", "email", "profile"]

    def get_pkce_params(self) -> dict[str, Any]:
        """The challenge and the nonce for the issuer, and the verifier for our session."""
        pair: dict[str, Any] = super().get_pkce_params()
        return {**pair, "nonce": nonce_for(pair["code_verifier"])}

    def get_redirect_from_request_kwargs(self, request: HttpRequest) -> dict[str, Any]:
        """Signing in, and where to after it. allauth would take scope, process and more from the address, which anybody may write."""
        return {"process": AuthProcess.LOGIN, "next_url": safe_next(request)}

    def extract_uid(self, data: Any) -> str:
        """A digest: issuer and subject together may be longer than allauth takes. It is kept in no table."""
        return hashlib.sha256(data.identity.encode()).hexdigest()

    def extract_extra_data(self, data: Any) -> dict[str, Any]:
        return {"proven": data}


def _reading() -> claims.Reading:
    return claims.Reading(
        email_claim=settings.OIDC_EMAIL_CLAIM,
        verified_claim=settings.OIDC_VERIFIED_CLAIM,
        name_claim=settings.OIDC_NAME_CLAIM,
        trusts_emails=bool(settings.OIDC_TRUSTS_EMAILS_OF) and settings.OIDC_TRUSTS_EMAILS_OF == settings.OIDC_ISSUER,
    )


def callback_address(request: HttpRequest) -> str:
    """Where the issuer sends people back to; it must be told there as an allowed callback address."""
    return request.build_absolute_uri(reverse("sign_in_callback"))


provider_classes = [IssuerProvider]
