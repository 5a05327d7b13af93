"""The desk that every browser test sits at."""

from __future__ import annotations

import re
import threading
from contextlib import AbstractContextManager
from typing import Any

import pytest
from django.core.signals import request_finished, request_started
from playwright.sync_api import Page

from tests.browser.conftest import OpenAs
from tests.browser.holding import Held
from tests.fixtures_browser import Desk
from tests.fixtures_story import Story

pytestmark = [pytest.mark.browser, pytest.mark.django_db(transaction=True)]


def test_who_leaves_waits_for_what_the_pages_asked_for_last(open_as: OpenAs, desk: Desk) -> None:
    """Otherwise the server goes on in the next test, and in a database that is just being emptied."""
    page = open_as("")
    page.goto("/sign-in/")
    page.wait_for_load_state("networkidle")
    asked, may_go_on, answered = threading.Event(), threading.Event(), threading.Event()

    def hold(**_signal: Any) -> None:
        asked.set()
        assert may_go_on.wait(10)

    def note(**_signal: Any) -> None:
        answered.set()

    request_started.connect(hold)
    request_finished.connect(note)
    try:
        page.evaluate("void fetch('/sign-in/')")
        assert asked.wait(10)
        release = threading.Timer(0.2, may_go_on.set)
        release.start()
        desk.leave()
        release.join()
        assert answered.is_set()
    finally:
        may_go_on.set()
        request_started.disconnect(hold)
        request_finished.disconnect(note)


def heard(page: Page, words: str) -> AbstractContextManager[object]:
    return page.expect_console_message(lambda message: message.text.startswith(words))


def test_what_is_asked_anew_is_no_complaint_and_what_fails_is_one(story: Story, open_as: OpenAs, desk: Desk) -> None:
    alice = open_as("alice")
    alice.goto("/groups/")
    held = Held(alice, re.compile("part=tree"))
    search = alice.get_by_role("searchbox")
    search.fill("pay")
    held.wait_for(1)
    with heard(alice, "htmx:sendAbort"):
        search.fill("payments")
    (_, route) = held.wait_for(2)
    assert desk.complaints == []

    with heard(alice, "htmx:sendError"), heard(alice, "Failed to load resource"):
        route.abort()
    held.is_over = True
    assert sorted(one.partition("/groups/: ")[2][:14] for one in desk.complaints) == ["Failed to load", "htmx:sendError"]
    desk.complaints.clear()
