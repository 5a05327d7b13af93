"""The desk that every browser test sits at."""

from __future__ import annotations

import threading
from typing import Any

import pytest
from django.core.signals import request_finished, request_started

from tests.browser.conftest import OpenAs
from tests.fixtures_browser import Desk

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
