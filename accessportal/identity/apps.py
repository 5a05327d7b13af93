"""The entry in ``INSTALLED_APPS``."""

from __future__ import annotations

from collections.abc import Sequence

from django.apps import AppConfig
from django.conf import settings
from django.core import checks


class IdentityConfig(AppConfig):
    """allauth finds our provider in ``accessportal.identity.provider`` because this is an app."""

    name = "accessportal.identity"

    def ready(self) -> None:
        """Every sign-in marks its session, also one that comes before the middleware was first needed."""
        from accessportal.identity import sessions  # noqa: F401

        checks.register(check_way_in, checks.Tags.security, deploy=True)


def check_way_in(app_configs: Sequence[AppConfig] | None, **_: object) -> list[checks.CheckMessage]:
    """Somebody can sign in: with the issuer, or in the demo with a password."""
    if settings.OIDC_ISSUER or settings.DEMO:
        return []
    words = "Nobody can sign in: no OpenID Connect issuer is set, and passwords are for the demo."
    hint = "Set PORTAL_OIDC_ISSUER, PORTAL_OIDC_CLIENT_ID and PORTAL_OIDC_CLIENT_SECRET (README, Signing in)."
    return [checks.Error(words, hint=hint, id="identity.E001")]
