"""People signed in at the admin pages."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from django.contrib.auth import get_user_model
from django.test import Client

from accessportal.console import views
from tests.fixtures_story import Story


@pytest.fixture(autouse=True)
def many_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """However busy the machine is, what is done to many is done in one web request, unless a test says otherwise."""
    monkeypatch.setattr(views, "AT_ONCE_SECONDS", 60.0)


@pytest.fixture
def as_person(story: Story) -> Callable[[str], Client]:
    """A browser in which the named person of the story is signed in: ``as_person("bob")``."""

    def sign_in(name: str) -> Client:
        user, _ = get_user_model().objects.get_or_create(username=f"{name}@example.com", defaults={"email": f"{name}@example.com"})
        client = Client()
        client.force_login(user)
        return client

    return sign_in
