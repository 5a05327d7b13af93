"""Parts of a page that refresh themselves, while somebody is at work in them."""

from __future__ import annotations

import pytest
from playwright.sync_api import expect

from tests.browser.conftest import OpenAs
from tests.fixtures_story import Story

pytestmark = [pytest.mark.browser, pytest.mark.slow, pytest.mark.django_db(transaction=True)]


def test_what_refreshes_itself_leaves_the_focus_where_it_was(story: Story, open_as: OpenAs) -> None:
    waiting = [story.ask_for_prod(seconds=3600 + number) for number in range(2)]
    bob = open_as("bob")
    bob.clock.install()
    bob.goto("/")
    for place in (
        ".places a[href='/admin/requests/']",
        f"#for-me a[href='/requests/{waiting[1].request_id}/']",
        f"#for-me form[action*='{waiting[1].request_id}'] button",
    ):
        control = bob.locator(place)
        control.focus()
        control.evaluate("(one) => one.setAttribute('data-before', '')")
        bob.clock.fast_forward(61_000)
        expect(bob.locator("[data-before]")).to_have_count(0)
        expect(control).to_be_focused()
