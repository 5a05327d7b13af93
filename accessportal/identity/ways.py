"""The ways in that the settings open, and where they may lead."""

from __future__ import annotations

from django.conf import settings
from django.contrib.auth import REDIRECT_FIELD_NAME
from django.http import HttpRequest
from django.utils.http import url_has_allowed_host_and_scheme


def has_issuer() -> bool:
    """Whether people sign in with the company's OpenID Connect issuer."""
    return bool(settings.OIDC_ISSUER)


def safe_next(request: HttpRequest) -> str:
    """Where the page that was asked for is, when it is one of ours; empty otherwise."""
    wanted = request.GET.get(REDIRECT_FIELD_NAME, "")
    is_ours = url_has_allowed_host_and_scheme(wanted, allowed_hosts={request.get_host()}, require_https=request.is_secure())
    return wanted if is_ours else ""
