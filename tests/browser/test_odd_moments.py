"""Answers that come late, twice or not at all, and people who act meanwhile: nothing they did is lost, or done to something else."""

from __future__ import annotations

import re

import pytest
from playwright.sync_api import Page, expect

from accessportal.access_requests.states import Status
from accessportal.console import views
from tests.browser.conftest import OpenAs
from tests.browser.holding import Held, answer_in_turn, let_htmx_tell
from tests.browser.people import A_REQUEST, fill_in, preview
from tests.fixtures_browser import Desk
from tests.fixtures_story import Story

pytestmark = [pytest.mark.browser, pytest.mark.slow, pytest.mark.django_db(transaction=True)]


def forgive_what_failed(desk: Desk) -> None:
    """The browser and htmx tell of each answer that a test made fail; nothing else is wrong."""
    failures = ("Failed to load resource", "htmx:sendError", "htmx:timeout", "Response Status Error Code")
    assert [one for one in desk.complaints if not any(words in one for words in failures)] == []
    desk.complaints.clear()


def draw_twice(page: Page) -> None:
    page.evaluate("new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done)))")


@pytest.mark.usefixtures("story")
def test_tab_takes_no_choice_of_a_list_for_fewer_letters(open_as: OpenAs) -> None:
    alice = open_as("alice")
    alice.goto("/requests/new/aws_account/")
    account = alice.get_by_role("combobox", name="Account")
    account.press_sequentially("payments-d")
    expect(alice.get_by_role("option").first).to_contain_text("payments-dev")
    Held(alice, re.compile("/choices/account/"))
    account.fill("payments-prod")
    account.press("Tab")
    expect(account).to_have_value("payments-prod")


def test_enter_takes_no_choice_that_the_arrows_went_to_before_more_was_typed(story: Story, open_as: OpenAs) -> None:
    olga = open_as("olga")
    olga.goto("/admin/rules/explain/")
    who = olga.get_by_role("combobox", name="Person or group")
    who.press_sequentially("ali")
    expect(olga.get_by_role("option", name=re.compile("Alice Park"))).to_be_visible()
    who.press("ArrowDown")
    Held(olga, re.compile("/people/|search"))
    who.fill("bob@example.com")
    who.press("Enter")
    expect(who).to_have_value("bob@example.com")
