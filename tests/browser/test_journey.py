"""The whole story in real Chromium, against everything that ``make run`` starts: twin, worker, web server."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Page, expect

from tests.browser.looks import look_at
from tests.browser.people import A_REQUEST, at_the_portal, fill_in, is_same_page, mark, preview, send, state
from tests.browser.running import RunningPortal, portal_in
from tests.fixtures_browser import Desk

# One group: the running portal is made once, whichever process gets these tests.
pytestmark = [pytest.mark.browser, pytest.mark.slow, pytest.mark.xdist_group("running-portal")]

_GRANT_MS = 30_000
_SHORT_ACCESS_MS = 90_000
_ALLOWED_LATENESS_SECONDS = 5.0


@pytest.fixture(scope="module")
def portal(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningPortal]:
    with portal_in(tmp_path_factory.mktemp("portal")) as running:
        yield running


def test_from_the_form_to_the_proved_end(portal: RunningPortal, desk: Desk) -> None:
    alice, bob = at_the_portal(desk, portal, "alice"), at_the_portal(desk, portal, "bob")
    short = alice.context.new_page()
    ask_for_one_minute(short)
    expect(state(short)).to_have_text("Active", timeout=_GRANT_MS)
    mark(short)
    assert portal.permission_sets_held("alice@example.com", "payments-dev") == {"PowerUserAccess"}

    ask_for_production(alice)
    approve_from_the_queue(bob)
    expect(state(alice)).to_have_text("Active", timeout=_GRANT_MS)
    assert is_same_page(alice)
    expect(alice).to_have_title(re.compile("^Active: payments-prod"))
    assert portal.permission_sets_held("alice@example.com", "payments-prod") == {"ReadOnlyAccess"}
    look_at(alice, "journey-granted")

    end_now(alice)
    expect(state(alice)).to_have_text("Ended", timeout=_GRANT_MS)
    assert portal.permission_sets_held("alice@example.com", "payments-prod") == set()

    expect(state(short)).to_have_text("Ended", timeout=_SHORT_ACCESS_MS)
    assert is_same_page(short)
    assert portal.permission_sets_held("alice@example.com", "payments-dev") == set()
    look_at(short, "journey-ended")
    assert lateness_on(short) < _ALLOWED_LATENESS_SECONDS


def ask_for_one_minute(page: Page) -> None:
    fill_in(page, account="payments-dev", permission_set="PowerUserAccess", duration="1m", reason="Look into the failed payout")
    expect(preview(page)).to_contain_text("payments-dev")
    expect(preview(page)).to_contain_text("Approved at once")
    send(page)


def ask_for_production(page: Page) -> None:
    """Typed, told beforehand who decides, sent; the page waits, marked."""
    fill_in(page, account="payments-prod", permission_set="ReadOnlyAccess", duration="2h", ticket="CHG-20817", reason="Incident 4711")
    expect(preview(page)).to_contain_text("prod-readonly")
    for name in ("Bob Baker", "Sam Suzuki", "Mei Marino"):
        expect(preview(page)).to_contain_text(name)
    look_at(page, "journey-form")
    send(page)
    expect(state(page)).to_have_text("Waiting for approval")
    mark(page)
    look_at(page, "journey-waiting")


def approve_from_the_queue(page: Page) -> None:
    page.reload()
    page.get_by_role("link", name=re.compile(r"Approvals \d")).click()
    row = page.get_by_role("row", name=re.compile("payments-prod"))
    expect(row).to_contain_text("Incident 4711")
    look_at(page, "journey-queue")
    row.get_by_role("button", name="Approve").click()
    expect(page.get_by_role("row", name=re.compile("payments-prod"))).to_have_count(0)


def end_now(page: Page) -> None:
    page.get_by_role("link", name="End now").click()
    sheet = page.get_by_role("dialog")
    expect(sheet).to_contain_text("End this access now?")
    look_at(page, "journey-end-sheet", full=False)
    sheet.get_by_role("button", name="End now").click()
    expect(page.get_by_text("It is being ended.")).to_be_visible()


def lateness_on(page: Page) -> float:
    """Seconds, as the receipt on the page tells them."""
    receipts = page.get_by_role("region", name="Receipts")
    expect(receipts).to_contain_text("Taken back")
    told = re.search(r"Lateness\s*([\d.]+) s after the end", receipts.inner_text())
    assert told is not None, receipts.inner_text()
    return float(told.group(1))
