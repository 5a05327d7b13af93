"""Answers that come late, twice or not at all, and people who act meanwhile: nothing they did is lost, or done to something else."""

from __future__ import annotations

import re

import pytest
from playwright.sync_api import Page, expect

from accessportal.access_requests.states import Status
from accessportal.console import views
from tests.browser.conftest import OpenAs
from tests.browser.holding import Held, answer_in_turn, let_htmx_tell
from tests.browser.people import A_REQUEST, fill_in, preview
from tests.fixtures_browser import Desk
from tests.fixtures_story import Story

pytestmark = [pytest.mark.browser, pytest.mark.slow, pytest.mark.django_db(transaction=True)]


def forgive_what_failed(desk: Desk) -> None:
    """The browser and htmx tell of each answer that a test made fail; nothing else is wrong."""
    failures = ("Failed to load resource", "htmx:sendError", "htmx:timeout", "Response Status Error Code")
    assert [one for one in desk.complaints if not any(words in one for words in failures)] == []
    desk.complaints.clear()


def draw_twice(page: Page) -> None:
    page.evaluate("new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done)))")


@pytest.mark.usefixtures("story")
def test_tab_takes_no_choice_of_a_list_for_fewer_letters(open_as: OpenAs) -> None:
    alice = open_as("alice")
    alice.goto("/requests/new/aws_account/")
    account = alice.get_by_role("combobox", name="Account")
    account.press_sequentially("payments-d")
    expect(alice.get_by_role("option").first).to_contain_text("payments-dev")
    Held(alice, re.compile("/choices/account/"))
    account.fill("payments-prod")
    account.press("Tab")
    expect(account).to_have_value("payments-prod")


def test_enter_takes_no_choice_that_the_arrows_went_to_before_more_was_typed(story: Story, open_as: OpenAs) -> None:
    olga = open_as("olga")
    olga.goto("/admin/rules/explain/")
    who = olga.get_by_role("combobox", name="Person or group")
    who.press_sequentially("ali")
    expect(olga.get_by_role("option", name=re.compile("Alice Park"))).to_be_visible()
    who.press("ArrowDown")
    Held(olga, re.compile("/people/|search"))
    who.fill("bob@example.com")
    who.press("Enter")
    expect(who).to_have_value("bob@example.com")


def test_a_link_pressed_twice_opens_one_sheet_and_leaves_what_is_typed(story: Story, open_as: OpenAs) -> None:
    request = story.ask_for_prod()
    alice = open_as("alice")
    alice.goto(f"/requests/{request.request_id}/")
    sheets = Held(alice, re.compile("/comment/"))
    alice.get_by_role("link", name="Comment").dispatch_event("click")
    sheets.wait_for(1)
    alice.get_by_role("link", name="Comment").dispatch_event("click")
    draw_twice(alice)

    sheets.let_go()
    words = alice.get_by_role("dialog").get_by_role("textbox")
    expect(words).to_be_visible()
    words.fill("What I typed")

    # The second was asked for before the first one answered, or is not asked for at all.
    alice.wait_for_load_state("networkidle")
    draw_twice(alice)
    expect(words).to_have_value("What I typed")


def test_the_question_asked_last_is_the_one_that_opens_and_stays(story: Story, open_as: OpenAs) -> None:
    first, last = story.ask_for_prod(), story.ask_for_prod(seconds=600)
    alice = open_as("alice")
    alice.goto("/")
    sheets = Held(alice, re.compile("/cancel/"))
    alice.locator(f"#cancel-{first.request_id}").click()
    sheets.wait_for(1)
    alice.locator(f"#cancel-{last.request_id}").click()

    # The first one is not waited for: the second is asked for while it has not been answered.
    sheets.wait_for(2)
    sheets.let_go()

    form = alice.get_by_role("dialog").locator("form")
    expect(form).to_have_attribute("action", re.compile(last.request_id))


def test_a_question_to_which_no_answer_comes_is_asked_on_its_own_page(story: Story, open_as: OpenAs, desk: Desk) -> None:
    request = story.ask_for_prod()
    alice = open_as("alice")
    alice.goto("/")
    alice.evaluate("htmx.config.timeout = 200")
    sheets = Held(alice, re.compile("/cancel/"))
    alice.locator(f"#cancel-{request.request_id}").click()
    sheets.wait_for(2)
    sheets.let_go()
    expect(alice).to_have_url(re.compile("/cancel/$"))
    expect(alice.get_by_role("button", name="Cancel request")).to_be_visible()
    forgive_what_failed(desk)


def test_a_verdict_that_could_not_be_asked_for_leaves_none_of_before(story: Story, open_as: OpenAs, desk: Desk) -> None:
    alice = open_as("alice")
    fill_in(alice, account="payments-dev", permission_set="PowerUserAccess", duration="1h", reason="Incident 4711")
    expect(preview(alice)).to_contain_text("Approved at once")
    verdicts = Held(alice, re.compile("/aws_account/preview/"))
    alice.get_by_role("combobox", name="Account").fill("payments-prod")
    alice.get_by_label("Why").focus()
    verdicts.wait_for(1)[0].fulfill(status=503, body="no")
    expect(preview(alice)).to_contain_text("The portal does not answer now")
    expect(preview(alice)).not_to_contain_text("Approved at once")
    verdicts.is_over = True
    alice.get_by_label("For how long").fill("2h")
    expect(preview(alice)).to_contain_text("Needs 2 approvals")
    forgive_what_failed(desk)


def test_time_left_is_true_on_a_page_that_the_browser_kept(story: Story, open_as: OpenAs) -> None:
    held = story.approve(story.ask_for_prod(seconds=7200))
    story.carry_out(held)
    alice = open_as("alice")
    begun = int(story.clock.now().timestamp() * 1000)
    alice.context.add_init_script(f"Date.now = () => {begun} + 1000 * Number(localStorage.getItem('passed'))")
    alice.goto(f"/requests/{held.request_id}/")
    left = alice.locator("[data-left]").first
    expect(left).to_have_text(re.compile("^(2 h|1 h 59 min)$"))
    alice.goto("/groups/")
    alice.evaluate("localStorage.setItem('passed', 3600)")
    alice.go_back()
    expect(left).to_have_text(re.compile("^(1 h|59 min)$"))


def test_what_decides_at_one_press_stays_under_the_pointer(story: Story, open_as: OpenAs) -> None:
    requests = {one.request_id: one for one in (story.ask_for_prod(), story.ask_for_prod(seconds=600))}
    bob = open_as("bob")
    bob.clock.install()
    bob.goto("/")
    forms = bob.locator("#for-me form")
    expect(forms).to_have_count(2)
    upper, lower = (forms.nth(place).get_attribute("action") for place in (0, 1))
    bob.locator("#for-me").get_by_role("button", name="Approve").nth(0).hover()
    story.deny(next(one for key, one in requests.items() if key in str(upper)), actor=story.sam)
    let_htmx_tell(bob)
    fragments = Held(bob, re.compile("/fragments/for-me/"))
    bob.clock.fast_forward(61_000)
    (route,) = fragments.wait_for(1)
    answer_in_turn(bob, [(route, route.fetch())])
    draw_twice(bob)
    assert forms.nth(0).get_attribute("action") == upper

    fragments.is_over = True
    bob.mouse.move(1, 1)
    bob.clock.fast_forward(61_000)
    expect(forms).to_have_count(1)
    expect(forms).to_have_attribute("action", str(lower))


def test_a_form_whose_sending_was_stopped_can_be_sent_again(story: Story, open_as: OpenAs) -> None:
    alice = open_as("alice")
    fill_in(alice, account="payments-dev", permission_set="PowerUserAccess", duration="1h", reason="Incident 4711")
    expect(preview(alice)).to_contain_text("Approved at once")
    sent, stop = Held(alice, re.compile("/requests/new/aws_account/$")), Held(alice, re.compile("[?]stop$"))
    # As when somebody presses Escape; a page that is on its way can't be told to by Playwright.
    alice.evaluate("void fetch('?stop').finally(() => window.stop())")
    stop.wait_for(1)
    button = alice.get_by_role("button", name="Send request")
    button.dispatch_event("click")
    sent.wait_for(1)
    stop.routes[0].fulfill(body="")
    expect(button).not_to_have_attribute("aria-busy", "true")
    button.dispatch_event("click")
    sent.wait_for(2)
    sent.let_go()
    alice.wait_for_url(A_REQUEST)


def test_what_goes_on_by_itself_says_that_it_can_t_and_goes_on_by_hand(
    story: Story, open_as: OpenAs, desk: Desk, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(views, "AT_ONCE_SECONDS", 0.0)
    for _ in range(3):
        story.ask_for_prod()
    bob = open_as("bob")
    bob.goto("/admin/requests/?pattern=waiting")
    bob.get_by_role("button", name="Approve all 3…").click()
    steps = Held(bob, re.compile("/bulk/approve/$"))
    bob.get_by_role("button", name="Approve 3", exact=True).dispatch_event("click")
    steps.wait_for(1)[0].continue_()
    steps.wait_for(2)[1].fulfill(status=503, body="not now")

    expect(bob.get_by_text("it stopped here")).to_be_visible()
    steps.is_over = True
    bob.get_by_role("button", name="Go on").click()
    expect(bob.get_by_role("heading", name="Approve: 3 of 3 done")).to_be_visible()
    forgive_what_failed(desk)


def test_a_dialog_that_is_closed_leaves_the_page_as_it_was(story: Story, open_as: OpenAs) -> None:
    """A form that only closes its dialog leads nowhere: the page goes on taking answers."""
    story.ask_for_prod()
    bob = open_as("bob")
    bob.goto("/admin/requests/?pattern=waiting")
    bob.keyboard.press("?")
    bob.get_by_role("dialog").get_by_role("button", name="Close").click()
    expect(bob.get_by_role("dialog")).to_be_hidden()
    story.ask_for_prod()

    bob.evaluate("htmx.trigger(document.body, 'decided')")

    expect(bob.get_by_role("navigation", name="Main").get_by_role("link", name="Approvals 2")).to_be_visible()


def test_a_key_pressed_twice_decides_once(story: Story, open_as: OpenAs) -> None:
    for seconds in (600, 1200):
        story.ask_for_prod(seconds=seconds)
    bob = open_as("bob")
    bob.goto("/admin/requests/?pattern=waiting")
    boxes = bob.locator("#results input[name=key]")
    expect(boxes).to_have_count(2)
    decisions = Held(bob, re.compile("/approve/$"))
    bob.keyboard.press("j")
    bob.keyboard.press("a")
    decisions.wait_for(1)
    bob.keyboard.press("a")

    decisions.let_go()

    expect(boxes).to_have_count(1)
    assert [one.status for one in story.pending_of("alice@example.com")] == [Status.PENDING]


def test_a_decision_is_about_the_request_that_was_marked_when_the_list_came_anew(story: Story, open_as: OpenAs) -> None:
    requests = [story.ask_for_prod(seconds=seconds) for seconds in (600, 1200)]
    bob = open_as("bob")
    bob.clock.install()
    bob.goto("/admin/requests/?pattern=waiting")
    boxes = bob.locator("#results input[name=key]")
    expect(boxes).to_have_count(2)
    upper = boxes.nth(0).get_attribute("value")
    lower = next(one for one in requests if one.request_id != upper)
    lists = Held(bob, re.compile("&mark="))
    let_htmx_tell(bob)
    story.deny(next(one for one in requests if one.request_id == upper), actor=story.sam)
    bob.clock.fast_forward(31_000)
    (route,) = lists.wait_for(1)
    bob.keyboard.press("j")
    expect(bob.locator(f"#tick-{upper}")).to_be_focused()

    answer_in_turn(bob, [(route, route.fetch())])
    expect(bob.get_by_text("The list has changed")).to_be_visible()
    bob.keyboard.press("a")

    expect(bob.get_by_role("heading", level=1)).to_have_text("It has changed meanwhile")
    assert story.now_of(lower).status is Status.PENDING
