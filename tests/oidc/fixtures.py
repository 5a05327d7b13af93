"""The local issuer, and a portal that is set up for it."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from django.core.cache import cache
from pytest_django import Settings

from tests.oidc.local_issuer import CLIENT_ID, CLIENT_SECRET, LocalIssuer, running


@pytest.fixture(scope="session")
def _issuer_server() -> Iterator[LocalIssuer]:
    with running() as issuer:
        yield issuer


@pytest.fixture
def issuer(_issuer_server: LocalIssuer, settings: Settings) -> Iterator[LocalIssuer]:
    """Set up in the portal, and nothing wrong with it; it knows Alice, Bob and Mallory. Passwords do not work beside it."""
    settings.DEMO = False
    settings.OIDC_ISSUER = _issuer_server.url
    settings.OIDC_CLIENT_ID, settings.OIDC_CLIENT_SECRET, settings.OIDC_NAME = CLIENT_ID, CLIENT_SECRET, "Example Inc"
    # Beginning anew includes what the portal remembers of the issuer.
    cache.clear()
    for name in ("alice", "bob", "mallory"):
        _issuer_server.know(f"{name}@example.com", name.title())
    yield _issuer_server
    _issuer_server.start_over()
    cache.clear()
