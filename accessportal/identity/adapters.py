"""What allauth asks us: who may come in, and what its flow may do besides (nothing)."""

from __future__ import annotations

from typing import Any

from allauth.account.adapter import DefaultAccountAdapter
from allauth.socialaccount.adapter import DefaultSocialAccountAdapter
from allauth.socialaccount.models import SocialApp
from allauth.socialaccount.providers.base.constants import AuthError
from django.conf import settings
from django.http import HttpRequest
from django.utils.crypto import get_random_string
from django.utils.http import url_has_allowed_host_and_scheme

from accessportal.identity import operations
from accessportal.identity.provider import PROVIDER_ID
from accessportal.identity.sessions import vouch
from accessportal.identity.tokens import Refused
from accessportal.kernel.clock import SystemClock
from accessportal.kernel.errors import NotAllowed

_STATE_LENGTH = 43
_MOST_SHOWN = 80


class AccountAdapter(DefaultAccountAdapter):  # type: ignore[misc]  # allauth is not typed
    """No sign-up, no steps after signing in, no messages of its own."""

    def is_open_for_signup(self, request: HttpRequest) -> bool:
        return False

    def get_login_stages(self) -> list[str]:
        return []

    def add_message(self, *_: Any, **__: Any) -> None:
        """The page that comes next shows who is signed in."""

    def is_safe_url(self, url: str) -> bool:
        """This host alone: allauth would take every allowed host."""
        return bool(url_has_allowed_host_and_scheme(url, {self.request.get_host()}, require_https=self.request.is_secure()))


class SocialAccountAdapter(DefaultSocialAccountAdapter):  # type: ignore[misc]  # allauth is not typed
    def list_apps(self, request: HttpRequest, provider: str | None = None, client_id: str | None = None) -> list[SocialApp]:
        """The one issuer of the settings. Rows of allauth's own table would be further ways in, and are not looked at."""
        if not settings.OIDC_ISSUER or provider not in {None, PROVIDER_ID} or client_id not in {None, settings.OIDC_CLIENT_ID}:
            return []
        app = SocialApp(
            provider=PROVIDER_ID, name=settings.OIDC_NAME, client_id=settings.OIDC_CLIENT_ID, secret=settings.OIDC_CLIENT_SECRET
        )
        return [app]

    def generate_state_param(self, state: dict[str, Any]) -> str:
        """256 bits; allauth's own has 95."""
        return get_random_string(_STATE_LENGTH)

    def pre_social_login(self, request: HttpRequest, sociallogin: Any) -> None:
        """Let the directory decide on whom the issuer named; allauth then signs them in. No ``SocialAccount`` is saved: who belongs to an
        identity is kept in the directory."""
        proven = sociallogin.account.extra_data.pop("proven")
        try:
            sociallogin.user = operations.admit(proven=proven, now=SystemClock().now())
        except NotAllowed as refusal:
            raise Refused(refusal.message, code=refusal.code, email=proven.email) from refusal
        vouch(request, proven.identity)

    def on_authentication_error(
        self, request: HttpRequest, provider: Any, error: Any = None, exception: Any = None, extra_context: dict[str, Any] | None = None
    ) -> None:
        """Show our own page of refusals. Without a state this browser did not begin here, or has been back already: a state is used
        once."""
        told = extra_context or {}
        if "state" not in told:
            raise NotAllowed(
                "This way back from the sign-in service was used already, is too old, or was begun in another browser.",
                code="state_unknown",
            )
        if error == AuthError.CANCELLED:
            raise Refused("You did not finish signing in at the sign-in service.", code="cancelled")
        named = request.GET.get("error", "")[:_MOST_SHOWN]
        raise Refused("The sign-in service refused" + (f" ({named})." if named.isidentifier() else "."), code="issuer_refused")
