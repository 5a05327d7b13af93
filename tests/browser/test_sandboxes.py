"""Sandboxes, looked at: at two sizes and in both colours, and the whole way from asking to giving back by keyboard alone."""

from __future__ import annotations

import re

import pytest
from playwright.sync_api import Page, expect

from accessportal.sandboxes import operations as sandboxes
from accessportal.sandboxes.states import Sandbox
from tests.browser.conftest import OpenAs
from tests.browser.keyboard import press, tab_to, write
from tests.browser.looks import look_at
from tests.browser.people import preview, state
from tests.browser.test_pages import visit
from tests.fixtures_pool import Labs

pytestmark = [pytest.mark.browser, pytest.mark.slow, pytest.mark.django_db(transaction=True)]

_LONG = "lab-with-a-very-long-name-that-somebody-thought-was-helpful-" * 3
_SLOT = 300


@pytest.fixture
def busy_pool(labs: Labs) -> Labs:
    """A day of lending, with everything that a drawing can show; sandboxes with long names among them."""
    rows = labs.fill(*(f"lab-{number:02}" for number in range(8)), hours=72)
    lent: list[Sandbox] = []
    for slot in range(288):
        if slot == 200:
            # Chance lends; what breaks is one that stays with nobody, so that each return finds its own.
            broken = next(row for row in rows if row.sandbox_id not in {one.sandbox_id for one in lent})
            sandboxes.quarantine(sandbox_id=broken.sandbox_id, reason="broken", actor=labs.story.olga, now=labs.story.clock.now())
        if slot in {20, 60, 100, 180, 240}:
            lent.append(labs.take_elsewhere(f"track-{slot}"))
        if slot in {140, 220}:
            over = lent.pop()
            sandboxes.release(sandbox_id=over.sandbox_id, track=over.track, actor=labs.story.olga, now=labs.story.clock.now())
        if slot % 6 == 0:
            labs.count()
        labs.story.clock.advance(_SLOT)
    labs.count()
    return labs


def figure(page: Page, word: str) -> str:
    return page.locator(".pool-counts > div", has_text=word).locator("b").inner_text()


def test_the_pool_looked_at(busy_pool: Labs, open_as: OpenAs) -> None:
    alice = open_as("alice")
    visit(alice, "/sandboxes/", "sandboxes-none-of-mine")
    alice.get_by_text("The same as a table").click()
    look_at(alice, "sandboxes-table")
    busy_pool.held(seconds=7200)
    visit(alice, "/sandboxes/", "sandboxes-mine")
    alice.get_by_role("link", name="7 days").click()
    expect(alice.get_by_role("link", name="7 days")).to_have_attribute("aria-current", "true")
    look_at(alice, "sandboxes-week")


def test_pointing_at_the_drawing_shows_the_figures_of_that_moment(busy_pool: Labs, open_as: OpenAs) -> None:
    alice = open_as("alice")
    alice.goto("/sandboxes/")
    now = figure(alice, "Free")
    box = alice.locator(".pool-chart svg").bounding_box()
    assert box is not None

    alice.mouse.move(box["x"] + 5, box["y"] + 40)

    expect(alice.locator(".pool-chart .at")).to_be_visible()
    assert (figure(alice, "Free"), figure(alice, "Lent")) == ("8", "0")
    look_at(alice, "sandboxes-pointed-at")
    alice.mouse.move(5, 5)
    expect(alice.locator(".pool-chart .at")).to_be_hidden()
    assert figure(alice, "Free") == now != "8"


def test_pools_without_anything_to_show(labs: Labs, open_as: OpenAs) -> None:
    alice = open_as("alice")
    visit(alice, "/sandboxes/", "sandboxes-uncounted")
    labs.count()
    visit(alice, "/sandboxes/", "sandboxes-empty")
    labs.fill("lab-1")
    labs.take_elsewhere()
    labs.count()
    visit(alice, "/sandboxes/", "sandboxes-none-free")
    visit(alice, "/requests/new/sandbox/", "sandbox-form-none-free")
    asked = labs.ask()
    labs.story.carry_out(asked)
    visit(alice, "/sandboxes/", "sandboxes-waiting")
    visit(alice, f"/requests/{asked.request_id}/", "sandbox-request-waiting")


def test_long_names(labs: Labs, open_as: OpenAs) -> None:
    labs.fill(_LONG)
    held = labs.held()
    labs.ask(prefix="", seconds=8 * 3600)
    alice = open_as("alice")
    visit(alice, "/", "home-sandbox-long")
    visit(alice, "/sandboxes/", "sandboxes-long")
    visit(alice, f"/requests/{held.request_id}/", "sandbox-request-long")
    visit(alice, f"/requests/{held.request_id}/extend/", "sandbox-extend")
    alice.goto(f"/requests/{held.request_id}/")
    alice.get_by_role("link", name="Give back").click()
    expect(alice.get_by_role("dialog")).to_contain_text("Give this sandbox back now?")
    look_at(alice, "sandbox-give-back-sheet", full=False)
    alice.keyboard.press("Escape")
    labs.story.clock.advance(1)
    sandboxes.release_by_operator(sandbox_id=labs.of(held).sandbox_id, reason="needed", actor=labs.story.olga, now=labs.story.clock.now())
    visit(alice, "/sandboxes/", "sandboxes-gone")
    visit(alice, f"/requests/{held.request_id}/", "sandbox-request-gone")


def test_asking_looked_at(labs: Labs, open_as: OpenAs) -> None:
    labs.fill("lab-1", "lab-2")
    labs.count()
    alice = open_as("alice")
    visit(alice, "/requests/new/", "kinds-all")
    visit(alice, "/requests/new/sandbox/", "sandbox-form")
    expect(preview(alice)).to_contain_text("Approved at once")
    alice.get_by_label("Which").select_option("Any sandbox")
    alice.get_by_label("For how long").fill("8h")
    expect(preview(alice)).to_contain_text("Needs one approval")
    look_at(alice, "sandbox-form-waits")
    alice.get_by_role("button", name="Send request").click()
    expect(alice.get_by_text("Say why you need it.")).to_be_visible()
    look_at(alice, "sandbox-form-errors")


def test_an_id_is_copied(labs: Labs, open_as: OpenAs) -> None:
    labs.fill("lab-1")
    held = labs.held()
    alice = open_as("alice")
    alice.context.grant_permissions(["clipboard-read", "clipboard-write"])
    alice.goto("/sandboxes/")

    alice.get_by_role("button", name=re.compile("^Copy the id")).click()

    expect(alice.locator("#said")).to_have_text("Copied")
    assert alice.evaluate("navigator.clipboard.readText()") == labs.of(held).sandbox_id


def test_alice_asks_holds_it_keeps_it_longer_and_gives_it_back_by_keyboard(labs: Labs, open_as: OpenAs) -> None:
    labs.fill("lab-1")
    labs.count()
    alice = open_as("alice")
    alice.goto("/sandboxes/")
    tab_to(alice, "Ask for a sandbox")
    press(alice, "Enter")
    alice.wait_for_url("**/requests/new/sandbox/")
    tab_to(alice, "For how long")
    press(alice, "Control+A")
    write(alice, "30m")
    tab_to(alice, "Why")
    write(alice, "Try the new parser")
    expect(preview(alice)).to_contain_text("Approved at once")
    tab_to(alice, "Send request")
    press(alice, "Enter")
    alice.wait_for_url(re.compile(r"/requests/[0-9a-f-]{36}/$"))
    (asked,) = labs.open_of_alice()
    labs.story.carry_out(asked)
    expect(state(alice)).to_have_text("Active")
    expect(alice.get_by_role("heading", level=1)).to_have_text("Sandbox lab-1")
    look_at(alice, "sandbox-request-active")

    tab_to(alice, "Extend")
    press(alice, "Enter")
    expect(alice.get_by_role("dialog")).to_contain_text("Keep your sandbox longer")
    look_at(alice, "sandbox-extend-sheet", full=False)
    expect(alice.get_by_role("button", name=re.compile(r"^\+1 h → "))).to_be_focused()
    press(alice, "Enter")
    expect(alice.get_by_text("Approved by rule.")).to_be_visible()
    for one in labs.open_of_alice():
        labs.story.carry_out(one)
    alice.goto("/sandboxes/")
    expect(alice.get_by_role("link", name="Give back")).to_have_count(1)

    tab_to(alice, "Give back ?: Sandbox lab-1")
    press(alice, "Enter")
    expect(alice.get_by_role("dialog")).to_contain_text("Give this sandbox back now?")
    tab_to(alice, "Give back")
    press(alice, "Enter")
    alice.wait_for_url(re.compile(r"/requests/[0-9a-f-]{36}/$"))
    for one in labs.open_of_alice():
        labs.story.carry_out(one)
    expect(state(alice)).to_have_text("Ended")
    alice.goto("/sandboxes/")
    expect(alice.get_by_text("You have none at the moment.")).to_be_visible()


def test_it_all_works_without_javascript(busy_pool: Labs, open_as: OpenAs) -> None:
    held = busy_pool.held()
    alice = open_as("alice", javascript=False)
    alice.goto("/sandboxes/")
    expect(alice.locator(".pool-chart path.area").first).to_be_attached()
    expect(alice.get_by_role("button", name=re.compile("^Copy"))).to_have_count(0)
    alice.get_by_role("link", name=re.compile("^Give back")).click()
    alice.get_by_role("button", name="Give back").click()
    expect(alice.get_by_text("Its end is now.")).to_be_visible()
    busy_pool.story.carry_out(held)
    alice.reload()
    expect(state(alice)).to_have_text("Ended")
