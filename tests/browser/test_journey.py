"""The whole story in real Chromium, against everything that ``make run`` starts: twin, worker, web server."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Page, expect

from tests.browser.keyboard import press, tab_to, write
from tests.browser.looks import SCREENSHOTS, look_at
from tests.browser.people import A_REQUEST, at_the_portal, fill_in, is_same_page, mark, preview, send, state
from tests.browser.running import RunningPortal, portal_in
from tests.fixtures_browser import Desk

# They stay in one process (tests/scheduling.py), which starts the portal once.
pytestmark = [pytest.mark.browser, pytest.mark.slow]

_GRANT_MS = 60_000
# An access of two minutes and its end.
_SHORT_ACCESS_MS = 240_000
# That it is seconds is measured by the benchmarks; here the machine may be busy with anything.
_ALLOWED_LATENESS_SECONDS = 30.0
_PASSING, _LASTING = "/engineering/web", "/engineering/mobile"


@pytest.fixture(scope="module")
def portal(past: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningPortal]:
    with portal_in(tmp_path_factory.mktemp("portal"), past=past) as running:
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
    expect(alice.get_by_text("Sent. It waits for approval.")).to_be_hidden()
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
    expect(page.get_by_text("Its end is now.")).to_be_visible()


def lateness_on(page: Page) -> float:
    """Seconds, as the receipt on the page tells them."""
    receipts = page.get_by_role("region", name="Receipts")
    expect(receipts).to_contain_text("Taken back")
    told = re.search(r"Gone\s*([\d.]+) s after the end", receipts.inner_text())
    assert told is not None, receipts.inner_text()
    return float(told.group(1))


def test_the_journey_by_keyboard_alone(portal: RunningPortal, desk: Desk) -> None:
    alice, bob = (sign_in_by_keyboard(desk, portal, name) for name in ("alice", "bob"))

    tab_to(alice, "Request access")
    press(alice, "Enter")
    expect(alice.get_by_role("heading", name="Request access to an AWS account")).to_be_visible()
    choose_by_keyboard(alice, "Account", "payments-p", "payments-prod")
    choose_by_keyboard(alice, "Permission set", "reado", "ReadOnlyAccess")
    expect(preview(alice)).to_contain_text("Needs one approval")
    # Over the length, which the rule fills in.
    expect(alice.get_by_label(re.compile("^Ticket"))).to_be_focused()
    write(alice, "CHG-4712")
    tab_to(alice, "30 min", key="Shift+Tab")
    press(alice, "Enter")
    expect(alice.get_by_label("For how long")).to_have_value("30m")
    tab_to(alice, "Why")
    write(alice, "Asked without a mouse")
    tab_to(alice, "Send request")
    press(alice, "Enter")
    alice.wait_for_url(A_REQUEST)

    approve_by_keyboard(bob, "Asked without a mouse")
    expect(state(alice)).to_have_text("Active", timeout=_GRANT_MS)

    tab_to(alice, "End now")
    press(alice, "Enter")
    expect(alice.get_by_role("dialog")).to_be_visible()
    press(alice, "Escape")
    expect(alice.get_by_role("dialog")).to_be_hidden()
    expect(alice.get_by_role("link", name="End now")).to_be_focused()
    press(alice, "Enter")
    expect(alice.get_by_role("dialog")).to_be_visible()
    tab_to(alice, "End now")
    press(alice, "Enter")
    expect(state(alice)).to_have_text("Ended", timeout=_GRANT_MS)


def sign_in_by_keyboard(desk: Desk, portal: RunningPortal, name: str) -> Page:
    page = desk.sit_down(base_url=portal.url).new_page()
    page.goto("/")
    expect(page.get_by_label("E-mail address")).to_be_focused()
    write(page, f"{name}@example.com")
    tab_to(page, "Password")
    write(page, portal.password)
    press(page, "Enter")
    expect(page.get_by_role("heading", name="My access")).to_be_visible()
    return page


def choose_by_keyboard(page: Page, label: str, typed: str, wanted: str) -> None:
    # The first field has the focus, and what is chosen there leads to the next.
    expect(page.get_by_role("combobox", name=label)).to_be_focused()
    write(page, typed)
    options = page.get_by_role("listbox", name=re.compile(label)).get_by_role("option")
    # The part that fits is marked: the list is the answer to all that was typed.
    expect(options.locator("mark").first).to_have_text(re.compile(typed, re.IGNORECASE))
    place = [words.split()[0] for words in options.all_inner_texts()].index(wanted)
    expect(options.first).to_have_attribute("aria-selected", "true")
    press(page, *["ArrowDown"] * place)
    expect(options.nth(place)).to_have_attribute("aria-selected", "true")
    press(page, "Enter")
    expect(page.get_by_role("combobox", name=label)).to_have_value(wanted)


def approve_by_keyboard(page: Page, reason: str) -> None:
    page.reload()
    expect(page.get_by_role("link", name=re.compile(r"Approvals \d"))).to_be_visible()
    tab_to(page, r"Approvals \d")
    press(page, "Enter")
    row = page.get_by_role("row").filter(has_text=reason)
    expect(row).to_be_visible()
    # One stop for each request that waits longer, and one for this. What to know of each comes when it is in sight, so its words change.
    approve = row.get_by_role("button", name="Approve")
    buttons = page.get_by_role("row").get_by_role("button", name="Approve", exact=True)
    place = buttons.evaluate_all("(all, id) => all.findIndex((one) => one.id === id)", approve.get_attribute("id"))
    for _ in range(place + 1):
        tab_to(page, "Approve")
    expect(approve).to_be_focused()
    press(page, "Enter")
    expect(row).to_have_count(0)


def test_without_javascript_a_request_is_sent_seen_and_ended(portal: RunningPortal, desk: Desk) -> None:
    alice = at_the_portal(desk, portal, "alice", javascript=False)
    fill_in(alice, account="payments-dev", permission_set="ReadOnlyAccess", duration="5m", reason="Scripts are off here")
    alice.get_by_role("button", name="Show what will happen").click()
    expect(preview(alice)).to_contain_text("Approved at once")
    alice.screenshot(path=SCREENSHOTS / "no-javascript-form.png", full_page=True)

    send(alice)
    expect(alice.get_by_role("heading", name="payments-dev · ReadOnlyAccess")).to_be_visible()
    expect(state(alice)).to_have_text(re.compile("Being granted|Active"))
    address = alice.url
    alice.goto("/")
    alice.get_by_role("link", name="payments-dev · ReadOnlyAccess").first.click()
    expect(alice).to_have_url(address)

    alice.get_by_role("link", name="End now").click()
    alice.get_by_role("button", name="End now").click()
    expect(alice.get_by_text("Its end is now.")).to_be_visible()
    alice.screenshot(path=SCREENSHOTS / "no-javascript-request.png", full_page=True)
    # A page without scripts does not refresh itself. Who holds nothing any more disturbs no other test either.
    for _ in range(_GRANT_MS // 500):
        if state(alice).inner_text() == "Ended":
            break
        alice.wait_for_timeout(500)
        alice.reload()
    expect(state(alice)).to_have_text("Ended")


def test_a_membership_ends_by_itself_and_a_permanent_one_below_it_stays(portal: RunningPortal, desk: Desk) -> None:
    portal.command("grant_role", "alice@example.com", _LASTING, "reader", "--as", "olga@example.com")
    alice, mei = at_the_portal(desk, portal, "alice"), at_the_portal(desk, portal, "mei")
    other = alice.context.new_page()
    ask_to_join(alice, _PASSING, "Help the web team")
    ask_to_join(other, _LASTING, "Help the mobile team")
    for reason in ("Help the web team", "Help the mobile team"):
        admit_from_the_queue(mei, reason)
    for page in (alice, other):
        expect(state(page)).to_have_text("Active", timeout=_GRANT_MS)
        assert is_same_page(page)
    assert [portal.role_in_table("alice@example.com", group) for group in (_PASSING, _LASTING)] == ["contributor", "contributor"]
    assert portal.cognito_groups_of("alice@example.com") >= {f"{_PASSING}:contributor", f"{_LASTING}:contributor"}

    for page in (alice, other):
        expect(state(page)).to_have_text("Ended", timeout=_SHORT_ACCESS_MS)
    assert [portal.role_in_table("alice@example.com", group) for group in (_PASSING, _LASTING)] == [None, "reader"]
    held = portal.cognito_groups_of("alice@example.com")
    assert {one for one in held if one.rpartition(":")[0] in {_PASSING, _LASTING}} == {f"{_LASTING}:reader"}
    look_at(other, "journey-membership-ended")
    alice.goto("/groups/")
    mine = alice.get_by_role("region", name="My groups")
    expect(mine).to_contain_text(_LASTING)
    expect(mine).not_to_contain_text(_PASSING)


def ask_to_join(page: Page, group: str, reason: str) -> None:
    """For two minutes as contributor; the page waits, marked. Both memberships are looked at before the first one ends."""
    page.goto(f"/requests/new/group/?group={group}")
    page.get_by_label("Contributor").check()
    page.get_by_label("For how long").fill("2m")
    page.get_by_label("Why").fill(reason)
    expect(preview(page)).to_contain_text("Mei Marino")
    send(page)
    mark(page)


def admit_from_the_queue(page: Page, reason: str) -> None:
    page.goto("/")
    page.get_by_role("link", name=re.compile(r"Approvals \d")).click()
    row = page.get_by_role("row").filter(has_text=reason)
    row.get_by_role("button", name="Approve").click()
    expect(row).to_have_count(0)
