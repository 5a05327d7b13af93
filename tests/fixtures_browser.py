"""A real Chromium, people at it, and an ear for everything that it complains about."""

from __future__ import annotations

import asyncio
import contextlib
import os
import shutil
import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from http.client import HTTPConnection
from typing import Any
from urllib.parse import urlsplit

import pytest
from playwright.sync_api import Browser, BrowserContext, ConsoleMessage, Locator, Page, expect, sync_playwright

# The first is Chromium without a window, which takes a quarter less.
_NAMES = ("chromium-headless-shell", "chromium", "chromium-browser", "google-chrome-stable", "google-chrome")
_HOW_TO_INSTALL = (
    "The browser tests drive a real Chromium, and none was found on the PATH. Install it (Debian: apt-get install chromium), "
    "or leave these tests out knowingly: PORTAL_TESTS_WITHOUT_BROWSER=1"
)
# No sandbox: CI runs as root. The others keep Chromium from talking to anybody but the portal.
_FLAGS = [
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
]
# A busy machine is slow, not wrong.
_MOST_MILLISECONDS = 60_000
# htmx's words for a request that a later one replaced; and those that go before them, before "htmx:sendError" and before "htmx:timeout".
_NO_COMPLAINTS = ("htmx:sendAbort", "htmx:afterRequest")
_TELL_POLICY_VIOLATIONS = """
addEventListener("securitypolicyviolation", (event) => {
  const { violatedDirective, blockedURI, sourceFile, lineNumber } = event;
  console.error(`Content-Security-Policy: ${violatedDirective} stopped ${blockedURI} in ${sourceFile}:${lineNumber}`);
});
"""


@pytest.fixture(scope="session")
def chromium() -> Iterator[Browser]:
    """One Chromium for all tests of a process: to start it takes as long as a test. Without one on this machine they fail, unless they
    were left out knowingly."""
    if os.environ.get("PORTAL_TESTS_WITHOUT_BROWSER") == "1":
        pytest.skip("left out by PORTAL_TESTS_WITHOUT_BROWSER=1")
    path = next(filter(None, map(shutil.which, _NAMES)), None)
    if path is None:
        pytest.fail(_HOW_TO_INSTALL, pytrace=False)
    with pytest.MonkeyPatch.context() as patch, sync_playwright() as playwright:
        for act in (Locator.check, Locator.click, Locator.fill, Locator.press):
            patch.setattr(Locator, act.__name__, _when_loaded(act))
        expect.set_options(timeout=_MOST_MILLISECONDS)
        browser = playwright.chromium.launch(executable_path=path, args=_FLAGS)
        with _its_loop_rests(browser):
            yield browser
        browser.close()


@contextlib.contextmanager
def _its_loop_rests(browser: Browser) -> Iterator[None]:
    """Playwright's loop stays marked as the one that runs in this thread. Other tests have nothing to do with it."""
    asyncio._set_running_loop(None)
    try:
        yield
    finally:
        asyncio._set_running_loop(browser._loop)


@contextlib.contextmanager
def _its_loop_runs(browser: Browser) -> Iterator[None]:
    asyncio._set_running_loop(browser._loop)
    try:
        yield
    finally:
        asyncio._set_running_loop(None)


def _when_loaded(act: Callable[..., None]) -> Callable[..., None]:
    """Scripts run after the page is drawn: what is clicked before that works as without scripts, which is not what is tested."""

    def acted(locator: Locator, *values: Any, **options: Any) -> None:
        locator.page.wait_for_load_state()
        act(locator, *values, **options)

    return acted


def _connect(server: str) -> None:
    """A server takes connections in their order: once it answers this one, all that came before have a thread that is waited for."""
    address = urlsplit(server)
    connection = HTTPConnection(str(address.hostname), address.port, timeout=_MOST_MILLISECONDS / 1000)
    with contextlib.closing(connection):
        connection.request("GET", "/static/portal/favicon.svg")
        connection.getresponse().read()


@dataclass
class Desk:
    """Opens browsers of different people beside each other, and notes what any of their pages complains about."""

    browser: Browser
    complaints: list[str] = field(default_factory=list)
    _contexts: list[BrowserContext] = field(default_factory=list)
    _servers: set[str] = field(default_factory=set)

    def sit_down(self, **options: Any) -> BrowserContext:
        """A browser of one's own: no cookie of anybody else. ``options`` are Playwright's."""
        context = self.browser.new_context(**{"locale": "en-GB", "timezone_id": "Europe/Berlin", "reduced_motion": "reduce"} | options)
        context.set_default_timeout(_MOST_MILLISECONDS)
        context.add_init_script(_TELL_POLICY_VIOLATIONS)
        context.on("page", self._listen)
        self._contexts.append(context)
        if "base_url" in options:
            self._servers.add(options["base_url"])
        return context

    def leave(self) -> None:
        """Afterwards no page asks for anything, and what the last ones asked for has been answered."""
        for context in self._contexts:
            context.close()
        for server in self._servers:
            _connect(server)
        for thread in threading.enumerate():
            if "(process_request_thread)" in thread.name:
                thread.join(_MOST_MILLISECONDS / 1000)
                assert not thread.is_alive(), "the server still answers a page that is closed"

    def _listen(self, page: Page) -> None:
        def hear(message: ConsoleMessage) -> None:
            where = message.location.get("url", "")
            # The status of a page that was asked for is judged by the test; Chromium tells of every 4xx.
            is_the_page_itself = message.text.startswith("Failed to load resource") and where == page.url
            if message.type in {"error", "warning"} and not is_the_page_itself and not message.text.startswith(_NO_COMPLAINTS):
                self.complaints.append(f"{page.url}: {message.text} ({where})")

        page.on("console", hear)
        page.on("pageerror", lambda error: self.complaints.append(f"{page.url}: {error}"))


@pytest.fixture
def desk(chromium: Browser, monkeypatch: pytest.MonkeyPatch) -> Iterator[Desk]:
    """At the end nobody's page may have complained: no error or warning in the console, nothing stopped by the policy."""
    # Playwright's own loop runs in this thread; Django's guard against it does not mean us.
    monkeypatch.setenv("DJANGO_ALLOW_ASYNC_UNSAFE", "true")
    desk = Desk(chromium)
    with _its_loop_runs(chromium):
        yield desk
        desk.leave()
    assert desk.complaints == []
