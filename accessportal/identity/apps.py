"""The entry in ``INSTALLED_APPS``."""

from __future__ import annotations

from django.apps import AppConfig
from django.core import checks


class IdentityConfig(AppConfig):
    """allauth finds our provider in ``accessportal.identity.provider`` because this is an app."""

    name = "accessportal.identity"

    def ready(self) -> None:
        """Every sign-in marks its session, also one that comes before the middleware was first needed."""
        from accessportal.identity import sessions  # noqa: F401
        from accessportal.identity.checks import check_way_in

        checks.register(check_way_in, checks.Tags.security, deploy=True)
