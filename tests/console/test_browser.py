"""The admin pages in a real browser: the strict policy blocks nothing, scripts help, and an error is never hidden."""

from __future__ import annotations

import re
from collections.abc import Callable

import pytest
from django.contrib.auth import get_user_model
from django.test import Client
from playwright.sync_api import Page, expect
from pytest_django.live_server_helper import LiveServer

from accessportal.access_requests import queries
from accessportal.access_requests.states import Status
from accessportal.catalog import queries as catalog
from accessportal.kernel.errors import Unavailable
from tests.browser.looks import axe_violations, look_at
from tests.console.test_lists import EVERY_PAGE, OPERATORS_PAGES
from tests.fixtures_browser import Desk
from tests.fixtures_story import Story

pytestmark = [pytest.mark.browser, pytest.mark.django_db(transaction=True)]

SignIn = Callable[[str], Client]
OpenAs = Callable[[str], Page]


@pytest.fixture
def open_as(story: Story, desk: Desk, live_server: LiveServer, as_person: SignIn) -> OpenAs:
    """A page in which the named person is signed in, at the story's time, which goes on until the desk has been left."""

    def open_page(name: str) -> Page:
        context = desk.sit_down(base_url=live_server.url)
        context.add_cookies([{"name": "sessionid", "value": as_person(name).cookies["sessionid"].value, "url": live_server.url}])
        context.clock.set_fixed_time(story.clock.now())
        return context.new_page()

    return open_page


def test_the_strict_policy_blocks_nothing_on_any_page(story: Story, open_as: OpenAs) -> None:
    """What it stopped would be a complaint at the desk."""
    request = story.ask_for_prod()
    olga = open_as("olga")
    change_of_olga = f"/admin/auth/user/{get_user_model().objects.get().pk}/change/"

    for url in (*EVERY_PAGE, *OPERATORS_PAGES, f"/requests/{request.request_id}/", change_of_olga):
        olga.goto(url)
        expect(olga.locator("h1").first).to_be_visible()


def test_two_are_chosen_by_keyboard_and_approved(story: Story, open_as: OpenAs) -> None:
    first, second = story.ask_for_prod(), story.ask_for_prod()
    bob = open_as("bob")
    bob.goto("/admin/requests/")
    expect(bob.get_by_role("button", name="Approve all 2…")).to_be_enabled()

    bob.get_by_label("Select all on this page").focus()
    bob.keyboard.press("Space")
    expect(bob.get_by_text("2 selected")).to_be_visible()
    bob.get_by_role("button", name="Approve 2…").press("Enter")
    expect(bob.get_by_role("heading", name="Approve 2 requests")).to_be_visible()
    bob.get_by_role("button", name="Approve 2", exact=True).press("Enter")

    expect(bob.get_by_role("heading", name="Approve: 2 of 2 done")).to_be_visible()
    assert {story.now_of(request).status for request in (first, second)} == {Status.ACTIVE}


def test_bob_approves_twenty_by_keyboard(story: Story, open_as: OpenAs) -> None:
    requests = [story.ask_for_prod() for _ in range(22)]
    bob = open_as("bob")
    bob.goto("/admin/requests/")
    expect(bob.get_by_text("22 by this rule").or_(bob.get_by_text("Holds nothing now")).first).to_be_visible()
    look_at(bob, "queue-of-many")

    bob.keyboard.press("?")
    expect(bob.get_by_role("dialog", name="Keys of this list")).to_be_visible()
    assert axe_violations(bob) == []
    bob.keyboard.press("Escape")
    expect(bob.get_by_role("dialog")).to_be_hidden()
    bob.keyboard.press("j")
    bob.keyboard.press("x")
    for _ in range(19):
        bob.keyboard.press("j")
    bob.keyboard.press("Shift+X")
    expect(bob.get_by_text("20 selected")).to_be_visible()
    bob.keyboard.press("a")
    expect(bob.get_by_role("heading", name="Approve 20 requests")).to_be_visible()
    expect(bob.get_by_text("20 ×")).to_be_visible()
    look_at(bob, "approve-many")
    bob.get_by_role("button", name="Approve 20", exact=True).press("Enter")

    expect(bob.get_by_role("heading", name=re.compile("^Approve: 20 of 20"))).to_be_visible()
    look_at(bob, "approve-many-done")
    assert sum(story.now_of(request).status is Status.ACTIVE for request in requests) == 20


def test_after_an_approval_by_key_the_next_one_is_marked(story: Story, open_as: OpenAs) -> None:
    for _ in range(3):
        story.ask_for_prod()
    bob = open_as("bob")
    bob.goto("/admin/requests/")
    boxes = bob.locator("#results input[name=key]")
    expect(boxes).to_have_count(3)
    after, last = boxes.nth(1).get_attribute("value"), boxes.nth(2).get_attribute("value")

    bob.keyboard.press("j")
    bob.keyboard.press("a")

    expect(boxes).to_have_count(2)
    expect(bob.locator(f"#tick-{after}")).to_be_focused()
    bob.keyboard.press("j")
    expect(bob.locator(f"#tick-{last}")).to_be_focused()


def test_a_click_with_shift_selects_a_range_and_none_selected_is_all(story: Story, open_as: OpenAs) -> None:
    for _ in range(6):
        story.ask_for_prod()
    bob = open_as("bob")
    bob.goto("/admin/requests/")
    expect(bob.get_by_role("button", name="Approve all 6…")).to_be_visible()

    boxes = bob.locator("#results input[name=key]")
    boxes.nth(1).click()
    boxes.nth(4).click(modifiers=["Shift"])
    expect(bob.get_by_text("4 selected")).to_be_visible()
    boxes.nth(2).click(modifiers=["Shift"])
    expect(bob.get_by_text("1 selected")).to_be_visible()
    boxes.nth(1).click()
    bob.get_by_role("button", name="Approve all 6…").click()

    # One of them is left out on the page that asks. The list names her, too.
    expect(bob.get_by_role("heading", name="Approve 6 requests")).to_be_visible()
    bob.get_by_text("Alice Park").first.click()
    bob.get_by_role("listitem").get_by_role("checkbox").first.uncheck()
    bob.get_by_role("button", name="Approve 5", exact=True).click()
    expect(bob.get_by_role("heading", name="Approve: 5 of 5 done")).to_be_visible()


def test_searching_as_one_types_keeps_the_page(open_as: OpenAs) -> None:
    olga = open_as("olga")
    olga.goto("/admin/accounts/")

    olga.get_by_label("Search accounts").press_sequentially("payments-d")

    expect(olga.get_by_text("payments-prod", exact=True)).to_be_hidden()
    expect(olga.get_by_text("payments-dev", exact=True)).to_be_visible()
    expect(olga).to_have_url(re.compile("q=payments-d"))


def test_a_fragment_that_fails_shows_the_error_page(open_as: OpenAs, desk: Desk, monkeypatch: pytest.MonkeyPatch) -> None:
    olga = open_as("olga")
    olga.goto("/admin/accounts/")

    def fail(**_: object) -> None:
        raise Unavailable("The database did not answer.", code="store_unavailable")

    monkeypatch.setattr(catalog, "list_accounts", fail)
    olga.get_by_label("Search accounts").press_sequentially("x")

    expect(olga.locator("table.list")).to_have_count(0)
    expect(olga.locator("main")).not_to_contain_text("No account is called that")
    desk.leave()
    # The browser and htmx tell of the failed fragment; nothing else is wrong.
    assert [one for one in desk.complaints if "status of 503" not in one and "Status Error Code 503" not in one] == []
    desk.complaints.clear()


def test_paging_goes_on_with_the_same_list(story: Story, open_as: OpenAs) -> None:
    for _ in range(26):
        story.ask_for_prod()
    assert queries.list_pending(actor=story.olga, now=story.clock.now(), limit=25).next_cursor
    olga = open_as("olga")
    olga.goto("/admin/requests/?pattern=pending")
    expect(olga.locator("tbody tr")).to_have_count(25)

    olga.get_by_role("link", name="Next page").click()

    expect(olga.locator("tbody tr")).to_have_count(1)
    expect(olga).to_have_url(re.compile("pattern=pending.*cursor="))
