"""What people do at the pages, by what they see there: labels, buttons and headings."""

from __future__ import annotations

import re

from playwright.sync_api import Locator, Page, expect

from tests.browser.running import RunningPortal
from tests.fixtures_browser import Desk

A_REQUEST = re.compile(r"/requests/[0-9a-f-]{36}/$")


def at_the_portal(desk: Desk, portal: RunningPortal, name: str, *, javascript: bool = True) -> Page:
    """The named person, signed in through the form, at ``My access``."""
    page = desk.sit_down(base_url=portal.url, java_script_enabled=javascript).new_page()
    page.goto("/")
    page.get_by_label("E-mail address").fill(f"{name}@example.com")
    page.get_by_label("Password").fill(portal.password)
    page.get_by_role("button", name="Sign in", exact=True).click()
    expect(page.get_by_role("heading", name="My access")).to_be_visible()
    return page


def fill_in(page: Page, *, account: str, permission_set: str, duration: str, reason: str, ticket: str = "") -> None:
    """The form for an AWS account, typed whole."""
    page.goto("/requests/new/aws_account/")
    line(page, "Account").fill(account)
    line(page, "Permission set").fill(permission_set)
    page.get_by_label("For how long").fill(duration)
    if ticket:
        # With JavaScript it is there once the rule is known that asks for one.
        page.get_by_label(re.compile("^Ticket")).fill(ticket)
    page.get_by_label("Why").fill(reason)


def line(page: Page, label: str) -> Locator:
    """The line to type into; with JavaScript its list of choices bears the same label."""
    return page.locator("input").and_(page.get_by_label(label, exact=True))


def send(page: Page) -> None:
    """The page of the request that came of it is open."""
    page.get_by_role("button", name="Send request").click()
    page.wait_for_url(A_REQUEST)


def preview(page: Page) -> Locator:
    return page.get_by_role("region", name="What will happen")


def state(page: Page) -> Locator:
    """The word that says where the request stands."""
    return page.locator("#live .page-head .state")


def mark(page: Page) -> None:
    """From now on :func:`is_same_page` tells whether the page was left or loaded anew."""
    page.evaluate("window.markedByTest = true")


def is_same_page(page: Page) -> bool:
    return bool(page.evaluate("window.markedByTest === true"))
