"""The page of the API's document in a real browser: drawn from our own files, stopped by no policy, and readable by all."""

from __future__ import annotations

import pytest
from playwright.sync_api import Page, expect
from pytest_django.live_server_helper import LiveServer

from accessportal.tokens import operations as tokens
from accessportal.tokens.states import Scope
from tests.browser.looks import SCREENSHOTS, axe_violations
from tests.conftest import FakeClock
from tests.fixtures_browser import Desk
from tests.sandboxes.conftest import SETUP, Pool

pytestmark = [pytest.mark.browser, pytest.mark.slow, pytest.mark.django_db(transaction=True)]


_SWAGGERS_OWN = ("axe heading-order", "axe nested-interactive", "axe button-name")
"""In the markup that Swagger UI writes: neither our page nor our colours can change it."""


def faults_of_ours(page: Page) -> list[str]:
    return [fault for fault in axe_violations(page) if not fault.startswith(_SWAGGERS_OWN)]


@pytest.fixture
def pool(tables: None, clock: FakeClock) -> Pool:
    return Pool(clock)


def test_the_document_is_drawn_and_tried_out(desk: Desk, live_server: LiveServer, pool: Pool) -> None:
    (sandbox,) = pool.fill(1)
    made = tokens.create_token(name="lab", scope=Scope.TRACK, actor=SETUP, now=pool.clock.now())
    page = desk.sit_down(base_url=live_server.url).new_page()
    asked: list[str] = []
    page.on("request", lambda request: asked.append(request.url))

    page.goto("/v1/docs")

    expect(page.get_by_role("heading", name="Access Portal API")).to_be_visible()
    expect(page.locator(".opblock")).to_have_count(35)
    SCREENSHOTS.mkdir(exist_ok=True)
    page.screenshot(path=SCREENSHOTS / "api-docs.png", full_page=True)
    assert faults_of_ours(page) == []
    # Swagger UI lets its buttons change colour slowly: a second of it, as on a busy machine.
    page.context.new_cdp_session(page).send("Animation.setPlaybackRate", {"playbackRate": 0.3})
    page.emulate_media(color_scheme="dark")
    expect(page.locator("html.dark-mode")).to_be_attached()
    assert faults_of_ours(page) == []
    page.emulate_media(color_scheme="light")
    expect(page.locator("html.dark-mode")).to_have_count(0)
    page.locator(".auth-wrapper .authorize").first.click()
    page.locator(".auth-container input").fill(made.text)
    page.locator(".auth-container .authorize").click()
    page.locator(".auth-container .btn-done").click()
    page.get_by_text("Take a sandbox").click()
    page.get_by_role("button", name="Try it out").click()
    page.get_by_placeholder("X-Track-ID").fill("track-1")
    page.get_by_role("button", name="Execute", exact=True).click()
    expect(page.locator(".live-responses-table")).to_contain_text(sandbox.sandbox_id)
    page.screenshot(path=SCREENSHOTS / "api-docs-tried.png", full_page=True)

    assert {url for url in asked if not url.startswith((live_server.url, "data:", "blob:"))} == set()
    assert faults_of_ours(page) == []
