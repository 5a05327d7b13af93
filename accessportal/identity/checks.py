"""What ``check --deploy`` says of signing in."""

from __future__ import annotations

from collections.abc import Sequence

from django.apps import AppConfig
from django.conf import settings
from django.core import checks

from accessportal.identity.ways import has_issuer


def check_way_in(app_configs: Sequence[AppConfig] | None, **_: object) -> list[checks.CheckMessage]:
    """Somebody can sign in: with the issuer, or in the demo with a password."""
    if has_issuer() or settings.DEMO:
        return []
    words = "Nobody can sign in: no OpenID Connect issuer is set, and passwords are for the demo."
    hint = "Set PORTAL_OIDC_ISSUER, PORTAL_OIDC_CLIENT_ID and PORTAL_OIDC_CLIENT_SECRET (README, Signing in)."
    return [checks.Error(words, hint=hint, id="identity.E001")]
