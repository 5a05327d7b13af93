"""The page of help."""

from __future__ import annotations

import pytest
from django.contrib.auth import get_user_model
from django.test import Client

from tests.fixtures_story import Story

pytestmark = pytest.mark.django_db


def test_help_is_at_the_foot_and_leads_to_api_and_documentation(story: Story, settings: object) -> None:
    client = Client()
    client.force_login(get_user_model().objects.create(username="alice@example.com"))
    settings.DOCS_URL = "https://docs.example.com/portal"  # type: ignore[attr-defined]

    assert 'href="/help/"' in client.get("/").content.decode()
    shown = client.get("/help/").content.decode()

    assert 'href="https://docs.example.com/portal"' in shown
    assert 'href="/v1/docs"' in shown
    assert "Drift" not in shown
    assert 'href="/help/"' in client.get("/v1/docs").content.decode()
