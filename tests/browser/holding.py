"""Answers that come when a test says so: what happens in a rare moment happens every time."""

from __future__ import annotations

import re
import time
from dataclasses import dataclass, field

from playwright.sync_api import APIResponse, Page, Route

_MOST_SECONDS = 30


@dataclass
class Held:
    """What ``page`` asks for at addresses that match ``address`` is kept in ``routes`` until the test lets it go on."""

    page: Page
    address: re.Pattern[str]
    routes: list[Route] = field(default_factory=list)
    is_over: bool = False

    def __post_init__(self) -> None:
        self.page.route(self.address, self._keep)

    def _keep(self, route: Route) -> None:
        if self.is_over:
            route.continue_()
        else:
            self.routes.append(route)

    def wait_for(self, count: int) -> list[Route]:
        """Those that are kept, as soon as there are so many."""
        last = time.monotonic() + _MOST_SECONDS
        while len(self.routes) < count:
            assert time.monotonic() < last, f"the page asked {len(self.routes)} times of {count} for {self.address.pattern}"
            self.page.wait_for_timeout(20)
        return self.routes

    def let_go(self) -> None:
        """All of them, and nothing is kept any more. (Playwright's own ``unroute`` would let them go in its own time.)"""
        self.is_over = True
        for route in self.routes:
            route.continue_()


def let_htmx_tell(page: Page) -> None:
    """What it has looked at, by the console: while a page is on its way elsewhere, Playwright can't ask it anything."""
    page.evaluate("document.addEventListener('htmx:afterOnLoad', () => console.info('htmx has looked'))")


def answer_in_turn(page: Page, answers: list[tuple[Route, APIResponse]]) -> None:
    """Each comes only after htmx has looked at the one before, which :func:`let_htmx_tell` makes it say."""
    for route, answer in answers:
        with page.expect_console_message(lambda message: message.text == "htmx has looked"):
            route.fulfill(response=answer)
