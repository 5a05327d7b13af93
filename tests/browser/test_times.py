"""How the pages' script says a moment, by the clock of whoever looks."""

from __future__ import annotations

import pytest

from tests.browser.conftest import OpenAs
from tests.fixtures_story import Story

pytestmark = [pytest.mark.browser, pytest.mark.slow, pytest.mark.django_db(transaction=True)]

_SAY = """async (moments) => {
  const { wordsForMoment } = await import("/static/portal/times.js");
  return moments.map((moment) => wordsForMoment(new Date(moment)).split(", ").pop());
}"""
# Berlin's clocks go back at 01:00 UTC, and forward in March.
_AUTUMN = ("2026-10-24T23:59:00Z", "2026-10-25T00:30:00Z", "2026-10-25T01:30:00Z", "2026-10-25T02:00:00Z")
_SPRING = ("2026-03-29T00:59:00Z", "2026-03-29T01:00:00Z")


def test_the_hour_that_comes_twice_says_which_it_is(story: Story, open_as: OpenAs) -> None:
    page = open_as("alice")
    page.goto("/")

    said = page.evaluate(_SAY, [*_AUTUMN, *_SPRING])

    assert said == ["01:59", "02:30 UTC+2", "02:30 UTC+1", "03:00", "01:59", "03:00"]
