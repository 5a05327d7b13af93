"""People at their browsers, without one: Django's test client, signed in."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from django.test import Client

from accessportal.identity.operations import ensure_demo_user
from tests.fixtures_story import Story

PASSWORD = "correct horse battery staple"
SignedIn = Callable[[str], Client]


@pytest.fixture
def signed_in(story: Story) -> SignedIn:
    """``signed_in("alice")`` is her browser, after the sign-in form."""

    def sign_in(name: str) -> Client:
        email = f"{name}@example.com"
        ensure_demo_user(email=email, name=name.title(), password=PASSWORD)
        client = Client()
        assert client.post("/sign-in/", {"username": email, "password": PASSWORD}).status_code == 302
        return client

    return sign_in
