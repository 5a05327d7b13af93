"""The page of help."""

from __future__ import annotations

import re

import pytest
from django.contrib.auth import get_user_model
from django.test import Client

from accessportal.console.resources.assignments import Assignments
from accessportal.console.resources.drift import Differences
from accessportal.console.resources.evidence import Evidence
from accessportal.console.resources.former_people import FormerPeople
from accessportal.console.resources.people import People
from accessportal.console.resources.sandboxes import QUARANTINE
from accessportal.console.templatetags.console import drift_pill
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
    assert "<dt>Claim</dt>" in shown
    assert "Drift" not in shown
    assert 'href="/help/"' in client.get("/v1/docs").content.decode()


def test_help_explains_the_words_that_operators_meet(story: Story) -> None:
    client = Client()
    client.force_login(get_user_model().objects.create(username="olga@example.com"))

    shown = client.get("/help/").content.decode().lower()

    explained = " ".join(re.findall(r"<dt>(.*?)</dt>", shown))
    words = [drift_pill(kind)["word"] for kind in ("missing", "unknown", "left_over", "dead_claim")]
    words += [deed.label for deed in (*Differences.deeds, QUARANTINE)]
    words += [place.plural for place in (Differences, Evidence, FormerPeople, Assignments)]
    words += [pattern.label for pattern in People.patterns if pattern.name == "behind"]
    assert len(words) == 13
    for word in words:
        assert word.lower().removesuffix("s") in explained, word
