"""Every page, at two sizes and in both colours: axe finds nothing, nothing sticks out, and nothing complains in the console."""

from __future__ import annotations

import re

import pytest
from django.contrib.auth import get_user_model
from playwright.sync_api import Page, expect
from pytest_django import Settings

from accessportal.access_requests import queries
from accessportal.access_requests.states import AccessRequest
from accessportal.kernel.errors import Unavailable
from accessportal.rules.operations import apply_rules
from tests.browser.conftest import BusyDay, OpenAs
from tests.browser.holding import Held
from tests.browser.looks import axe_violations, cut_placeholders, jumps, look_at, watch_for_jumps
from tests.browser.people import fill_in, line, preview
from tests.fixtures_records import APPROVAL, RECORD_RULES
from tests.fixtures_records import ask as ask_for_record
from tests.fixtures_story import RULES, Story

pytestmark = [pytest.mark.browser, pytest.mark.slow, pytest.mark.django_db(transaction=True)]


def visit(page: Page, address: str, name: str, *, status: int = 200) -> None:
    response = page.goto(address)
    assert response is not None
    assert response.status == status, address
    expect(page.locator("h1").first).to_be_attached()
    look_at(page, name)


def page_of(request: AccessRequest) -> str:
    return f"/requests/{request.request_id}/"


_IS_DIMMED_AT = """
(field, text) => {
  field.select();
  document.execCommand("insertText", false, text);
  return "typing" in document.getElementById("preview").dataset;
}
"""


def begin_at_the_account(page: Page) -> None:
    """A browser gives the focus to the first field a moment after the page is loaded; what is typed before goes nowhere."""
    page.goto("/requests/new/aws_account/")
    expect(page.get_by_role("combobox", name="Account")).to_be_focused()


def test_home_and_form(busy_day: BusyDay, open_as: OpenAs) -> None:
    story = busy_day.story
    apply_rules(text=RULES + RECORD_RULES, actor=story.olga, now=story.clock.now())
    held = story.carry_out(ask_for_record(story, APPROVAL, resource=f"docs/{'a-long-name-without-a-blank' * 6}"))
    alice = open_as("alice")
    visit(alice, "/", "home")
    visit(alice, page_of(held), "request-approval")
    visit(alice, "/requests/new/", "form-start")
    visit(alice, "/requests/new/aws_account/", "form-empty")

    alice.get_by_role("combobox", name="Account").press_sequentially("pay")
    expect(alice.get_by_role("option", name=re.compile("payments-prod"))).to_be_visible()
    alice.keyboard.press("ArrowDown")
    look_at(alice, "form-choices")

    fill_in(alice, account="payments-dev", permission_set="PowerUserAccess", duration="1h", reason="Incident 4711")
    expect(preview(alice)).to_contain_text("You already hold this")
    look_at(alice, "form-at-once")

    account = alice.get_by_role("combobox", name="Account")
    account.focus()
    # In one go: a moment after the last letter nobody is typing any more.
    assert account.evaluate(_IS_DIMMED_AT, "security-audit")
    expect(alice.locator("summary", has_text="1 that you can’t ask for")).to_be_visible()
    look_at(alice, "form-others")
    alice.get_by_label("Why").focus()
    expect(preview(alice)).to_contain_text("security-accounts")
    look_at(alice, "form-refused")

    fill_in(alice, account="payments-prod", permission_set="ReadOnlyAccess", duration="forever", reason="")
    alice.get_by_role("button", name="Send request").click()
    expect(alice.get_by_text("Say why you need it.")).to_be_visible()
    look_at(alice, "form-errors")

    alice.goto("/requests/new/relationship/")
    for label, typed in (("Scope", "tenant:acme-corp"), ("Relation", "editor"), ("Object", "docs/plan"), ("For how long", "1h")):
        line(alice, label).fill(typed)
    expect(preview(alice)).to_contain_text("Approved at once")
    look_at(alice, "form-relationship")
    alice.get_by_label("Object", exact=True).fill("elsewhere/plan")
    expect(preview(alice)).to_contain_text("No rule offers alice@example.com editor of elsewhere/plan")
    alice.get_by_text("Why each rule says no").click()
    look_at(alice, "form-relationship-refused")


def test_requests_in_every_state(busy_day: BusyDay, open_as: OpenAs, settings: Settings) -> None:
    settings.AWS_START_URL = "https://example.awsapps.com/start"
    alice = open_as("alice")
    for name in ("active", "shared", "granting", "stuck", "half_approved", "ended", "denied", "lapsed"):
        visit(alice, page_of(getattr(busy_day, name)), f"request-{name.replace('_', '-')}")

    visit(alice, f"{page_of(busy_day.active)}extend/", "extend")
    visit(alice, f"{page_of(busy_day.waiting)}cancel/", "cancel-page")

    alice.goto(page_of(busy_day.waiting))
    alice.get_by_role("link", name="Cancel").click()
    expect(alice.get_by_role("dialog")).to_contain_text("Cancel this request?")
    look_at(alice, "cancel-sheet", full=False)


def test_a_closing_that_is_told_late_leaves_the_next_question_alone(busy_day: BusyDay, open_as: OpenAs) -> None:
    """Chromium tells of a closed dialog a frame later: on a busy machine after the next one was opened."""
    alice = open_as("alice")
    alice.goto(page_of(busy_day.waiting))
    alice.get_by_role("link", name="Cancel").click()
    dialog = alice.get_by_role("dialog")
    expect(dialog).to_contain_text("Cancel this request?")
    alice.locator("#sheet").dispatch_event("close")
    expect(dialog).to_contain_text("Cancel this request?")

    alice.keyboard.press("Escape")
    expect(dialog).to_be_hidden()
    expect(alice.locator("#sheet-body")).to_be_empty()
    expect(alice.get_by_role("link", name="Cancel")).to_be_focused()


def test_a_preview_is_readable_while_the_next_is_under_way(busy_day: BusyDay, open_as: OpenAs) -> None:
    alice = open_as("alice")
    fill_in(alice, account="payments-dev", permission_set="PowerUserAccess", duration="1h", reason="Incident 4711")
    expect(preview(alice)).to_contain_text("You already hold this")
    held = Held(alice, re.compile("/aws_account/preview/"))
    alice.get_by_label("For how long").fill("30m")
    expect(alice.locator("#preview.htmx-request")).to_be_attached()
    assert axe_violations(alice) == []
    held.let_go()
    expect(alice.locator("#preview.htmx-request")).to_have_count(0)


# Of each row, scrolled to its start or its end: whether it holds more than it shows, and where it fades.
_FADED = """
async (rows, share) => {
  rows.forEach((row) => row.scrollTo(share * row.scrollWidth, 0));
  await new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done)));
  return rows.map((row) => [row.scrollWidth > row.clientWidth + 1, ["data-before", "data-after"].map((name) => row.hasAttribute(name))]);
}
"""


@pytest.mark.parametrize("address", ["/admin/audit/", "/admin/tokens/"])
def test_the_place_where_one_is_shows_on_a_phone(busy_day: BusyDay, open_as: OpenAs, address: str) -> None:
    olga = open_as("olga")
    olga.set_viewport_size({"width": 390, "height": 844})
    olga.goto(address)
    for here in olga.locator(".places [aria-current]").all():
        expect(here).to_be_in_viewport(ratio=0.95)
    assert olga.evaluate("scrollY") == 0
    # A row fades at the edge beyond which others lie, and only there.
    at_start, at_end = (olga.locator(".places").evaluate_all(_FADED, share) for share in (0, 1))
    assert any(overflows for overflows, _ in at_start)
    assert all(faded == [False, overflows] for overflows, faded in at_start)
    assert all(faded == [overflows, False] for overflows, faded in at_end)


def test_deciding(busy_day: BusyDay, open_as: OpenAs) -> None:
    bob = open_as("bob")
    bob.goto("/")
    expect(bob.get_by_role("region", name="Waiting for me")).to_be_visible()
    expect(bob).to_have_title(re.compile(r"^\(\d+\+?\) My access"))
    look_at(bob, "home-approver")
    assert cut_placeholders(bob) == []
    visit(bob, page_of(busy_day.half_approved), "decide")
    bob.get_by_role("link", name="Approve with a reason").click()
    expect(bob.get_by_role("dialog")).to_contain_text("Approve this request?")
    look_at(bob, "approve-sheet", full=False)

    visit(bob, "/admin/", "admin-of-an-approver")
    visit(bob, "/admin/requests/", "queue")
    assert cut_placeholders(bob) == []
    boxes = bob.get_by_role("row").get_by_role("checkbox")
    for number in (1, 2):
        boxes.nth(number).check()
    expect(bob.get_by_text("2 selected")).to_be_visible()
    bob.get_by_role("button", name="Deny 2…").click()
    expect(bob.get_by_role("heading", name="Deny 2 requests")).to_be_visible()
    look_at(bob, "deny-many")
    bob.get_by_role("button", name="Deny 2", exact=True).click()
    expect(bob.get_by_role("alert")).to_be_visible()
    look_at(bob, "deny-many-without-reason")
    bob.get_by_role("textbox", name="Reason").fill("Ask the team that owns it first.")
    bob.get_by_role("button", name="Deny 2", exact=True).click()
    expect(bob.get_by_role("heading", name="Deny: 2 of 2 done")).to_be_visible()
    look_at(bob, "deny-many-done")

    bob.goto("/admin/requests/")
    bob.get_by_role("row").filter(has_text="Dana Osei").first.get_by_role("link", name="Deny…").click()
    expect(bob.get_by_role("button", name="Deny", exact=True)).to_be_visible()
    look_at(bob, "deny-one")


LISTS = {
    "admin": "/admin/",
    "requests-pending": "/admin/requests/?pattern=pending",
    "requests-active": "/admin/requests/?pattern=active",
    "requests-ending": "/admin/requests/?pattern=ending",
    "requests-stuck": "/admin/requests/?pattern=stuck",
    "requests-of-nobody": "/admin/requests/?find=nobody@example.com",
    "requests-by-person": "/admin/requests/?pattern=all&q=alice@example.com",
    "assignments": "/admin/assignments/",
    "people": "/admin/people/",
    "people-behind": "/admin/people/?pattern=behind",
    "groups": "/admin/groups/",
    "groups-below": "/admin/groups/?pattern=under&q=/engineering",
    "rules": "/admin/rules/",
    "audit": "/admin/audit/",
    "accounts": "/admin/accounts/",
    "permission-sets": "/admin/permission-sets/",
    "account-pool": "/admin/account-pool/",
    "leases": "/admin/leases/",
}


def test_lists_of_the_administration(busy_day: BusyDay, open_as: OpenAs) -> None:
    olga = open_as("olga")
    for name, address in LISTS.items():
        visit(olga, address, f"list-{name}")


def test_details_of_the_administration(busy_day: BusyDay, open_as: OpenAs) -> None:
    olga = open_as("olga")
    for name in ("stuck", "half_approved", "ended"):
        visit(olga, f"/admin{page_of(getattr(busy_day, name))}", f"detail-request-{name.replace('_', '-')}")
    visit(olga, f"/admin{page_of(busy_day.ended)}history/?check=1", "detail-request-history")
    visit(olga, "/admin/rules/prod-power/", "detail-rule")
    visit(olga, "/people/alice@example.com/", "detail-person")
    visit(olga, "/groups/at/engineering/", "detail-group")
    visit(olga, "/admin/groups/~2Fengineering/history/?check=1", "detail-group-history")
    visit(olga, f"/admin/audit/?pattern=entity&q=request%23{busy_day.ended.request_id}", "audit-of-a-request")

    olga.goto("/admin/assignments/")
    olga.get_by_role("row").nth(1).get_by_role("link").first.click()
    expect(olga.get_by_role("heading", level=1)).to_contain_text(" for ")
    look_at(olga, "detail-assignment")

    scope, long_name = f"tenant:{'a' * 60}:env:{'b' * 60}", "a-long-name-without-a-blank" * 6
    olga.goto("/admin/approvals/grant/")
    for label, typed in (("Scope", scope), ("Identity", long_name), ("Action", "GET"), ("Resource", f"docs/{long_name}")):
        olga.get_by_label(label, exact=True).fill(typed)
    look_at(olga, "grant-approval")
    olga.get_by_role("button", name="Grant").click()
    expect(olga.get_by_role("heading", level=1)).to_contain_text("GET on docs/")
    look_at(olga, "detail-approval")
    visit(olga, f"/admin/approvals/?pattern=scope&q={scope}", "list-approvals")
    visit(olga, "/admin/approvals/?pattern=holder&q=tenant:&holder=alice", "list-approvals-refused", status=400)
    visit(olga, "/admin/scopes/?pattern=counted", "list-scopes")
    visit(olga, f"/admin/scopes/{scope}/do/policy/", "set-policy")
    visit(olga, f"/admin/check-record/?about=approval&scope={scope}&who={long_name}&verb=GET&target=docs/*", "check-record")


def test_why_and_who_can(busy_day: BusyDay, open_as: OpenAs) -> None:
    olga = open_as("olga")
    question = "/admin/rules/explain/?account=payments-prod&permission_set=ReadOnlyAccess"
    visit(olga, "/admin/rules/explain/", "why-empty")
    visit(olga, f"{question}&subject=alice@example.com&duration=2h&ticket_id=CHG-1", "why-allowed")
    visit(olga, f"{question}&subject=mallory@example.com&duration=20h&ticket_id=", "why-refused")


def test_pages_of_the_framework(busy_day: BusyDay, open_as: OpenAs) -> None:
    olga = open_as("olga")
    for name in ("auth/user", "sessions/session", "django_q/schedule"):
        visit(olga, f"/admin/{name}/", f"framework-{name.replace('/', '-')}")
    visit(olga, f"/admin/auth/user/{get_user_model().objects.get().pk}/change/", "framework-user")


def test_somebody_whom_no_rule_serves(busy_day: BusyDay, open_as: OpenAs) -> None:
    mallory = open_as("mallory")
    visit(mallory, "/", "home-empty")
    fill_in(mallory, account="payments-prod", permission_set="ReadOnlyAccess", duration="1h", reason="I would like to")
    expect(preview(mallory)).to_contain_text("Not possible like this")
    mallory.get_by_text("Why each rule says no").click()
    look_at(mallory, "form-for-nobody")
    mallory.get_by_role("button", name="Send request").click()
    expect(mallory.get_by_role("alert")).to_be_visible()
    look_at(mallory, "form-refused-when-sent")


def test_signing_in_and_out(open_as: OpenAs) -> None:
    nobody = open_as("")
    visit(nobody, "/sign-in/", "sign-in")
    nobody.get_by_label("E-mail address").fill("alice@example.com")
    nobody.get_by_label("Password").fill("wrong")
    nobody.get_by_role("button", name="Sign in", exact=True).click()
    expect(nobody.get_by_role("alert")).to_be_visible()
    look_at(nobody, "sign-in-wrong")

    alice = open_as("alice")
    alice.goto("/")
    alice.get_by_role("button", name="Sign out").click()
    expect(alice.get_by_role("heading", level=1)).not_to_have_text("My access")
    look_at(alice, "signed-out")


def test_pages_for_what_went_wrong(busy_day: BusyDay, open_as: OpenAs, monkeypatch: pytest.MonkeyPatch) -> None:
    alice, bob = open_as("alice"), open_as("bob")
    visit(alice, "/nothing/here/", "error-404", status=404)
    visit(alice, "/admin/", "error-403", status=403)

    bob.goto(f"{page_of(busy_day.waiting)}approve/")
    busy_day.story.approve(busy_day.waiting, actor=busy_day.story.sam)
    bob.get_by_role("button", name="Approve").click()
    expect(bob.get_by_role("heading", level=1)).to_have_text("It has changed meanwhile")
    look_at(bob, "error-409")

    alice.goto(f"{page_of(busy_day.half_approved)}cancel/")
    alice.context.clear_cookies(name="csrftoken")
    # Without whose page it was, it is nobody's to bring back.
    alice.locator("[name=typed_by]").evaluate("(field) => field.remove()")
    alice.get_by_role("button", name="Cancel request").click()
    expect(alice.get_by_role("heading", level=1)).to_have_text("That form is too old")
    look_at(alice, "error-403-form-too-old")

    monkeypatch.setattr(queries, "list_open_through", _fail)
    visit(alice, "/", "error-503", status=503)


def _fail(**_: object) -> None:
    raise Unavailable("The database did not answer.", code="store_unavailable")


def test_enter_takes_the_first_of_a_list_also_before_the_list_is_there(story: Story, open_as: OpenAs) -> None:
    alice = open_as("alice")
    alice.set_viewport_size({"width": 390, "height": 844})
    alice.goto("/requests/new/aws_account/")
    watch_for_jumps(alice)
    account, permission_set = (alice.get_by_role("combobox", name=name) for name in ("Account", "Permission set"))

    account.press_sequentially("payments-de")
    account.press("Enter")
    expect(account).to_have_value("payments-dev")
    permission_set.press_sequentially("poweru")
    expect(alice.get_by_role("option", name=re.compile("PowerUser"))).to_be_visible()
    permission_set.press("Enter")
    expect(permission_set).to_have_value("PowerUserAccess")

    # Nothing was sent by that, and the list is gone.
    expect(alice.get_by_role("option", name=re.compile("PowerUser"))).to_be_hidden()
    expect(alice.get_by_text("Say why you need it.")).to_have_count(0)
    # The length is the rule's, no ticket is asked for: it goes on with the reason.
    expect(alice.get_by_label("Why")).to_be_focused()
    expect(preview(alice)).to_contain_text("Approved at once")
    assert jumps(alice) == []


@pytest.mark.usefixtures("story")
def test_a_list_of_choices_is_gone_once_somebody_chose_or_left_the_field(open_as: OpenAs) -> None:
    alice = open_as("alice")
    alice.goto("/requests/new/aws_account/")
    permission_set, shown = alice.get_by_role("combobox", name="Permission set"), alice.locator(".combo-list:visible")
    alice.get_by_role("combobox", name="Account").press_sequentially("payments-pr")
    # The answer to all that was typed: another one would take the choice away in the middle of a click.
    expect(alice.get_by_role("option").locator("mark").first).to_have_text("payments-pr")
    alice.get_by_role("option", name=re.compile("payments-prod")).click()
    # It opened by itself, with what Alice can't ask for below: the arrows lead there and back, and Tab to the length.
    expect(permission_set).to_be_focused()
    others = alice.locator("summary", has_text="that you can’t ask for")
    expect(others).to_be_visible()
    alice.keyboard.press("ArrowUp")
    alice.keyboard.press("ArrowDown")
    expect(others).to_be_focused()
    alice.keyboard.press("ArrowUp")
    expect(permission_set).to_be_focused()
    expect(shown).to_have_count(1)
    alice.keyboard.press("Tab")
    expect(alice.get_by_label("For how long")).to_be_focused()
    expect(shown).to_have_count(0)

    permission_set.click()
    alice.get_by_role("option", name=re.compile("ReadOnlyAccess")).click()
    expect(permission_set).to_have_value("ReadOnlyAccess")
    expect(shown).to_have_count(0)
    permission_set.click()
    expect(shown).to_have_count(1)
    alice.get_by_role("heading", name="Request access").click()
    expect(shown).to_have_count(0)


def test_one_box_leads_from_home_to_the_form_by_keyboard(story: Story, open_as: OpenAs) -> None:
    alice = open_as("alice")
    alice.goto("/")
    alice.keyboard.press("Control+k")
    expect(alice.get_by_role("combobox", name="What do you need?")).to_be_focused()
    alice.keyboard.type("payments-pr")
    alice.keyboard.press("Enter")
    alice.wait_for_url(re.compile("/requests/new/aws_account/"))
    expect(alice.get_by_role("combobox", name="Account")).to_have_value("payments-prod")
    # What takes the fewest approvals, and it goes on with the ticket that the rule asks for.
    expect(alice.get_by_role("combobox", name="Permission set")).to_have_value("ReadOnlyAccess")
    expect(alice.get_by_label(re.compile("^Ticket"))).to_be_focused()


def test_the_form_goes_on_to_what_is_still_to_be_typed_and_is_sent_from_there(story: Story, open_as: OpenAs) -> None:
    alice = open_as("alice")
    begin_at_the_account(alice)
    watch_for_jumps(alice)
    alice.keyboard.type("payments-pr")
    alice.keyboard.press("Enter")
    permission_set, ticket = alice.get_by_role("combobox", name="Permission set"), alice.get_by_label(re.compile("^Ticket"))
    expect(permission_set).to_be_focused()
    # What takes the fewest approvals is the first, and Enter takes that.
    expect(alice.get_by_role("option").first).to_have_attribute("aria-selected", "true")
    alice.keyboard.press("Enter")
    expect(permission_set).to_have_value("ReadOnlyAccess")
    expect(ticket).to_be_focused()
    # Every ticket of the rule begins with CHG-: the number is enough, for the verdict as well.
    with alice.expect_response(re.compile("ticket_id=CHG-4712")):
        alice.keyboard.type("4712")
    alice.keyboard.press("Tab")
    expect(ticket).to_have_value("CHG-4712")
    alice.keyboard.type("Asked without a mouse")
    assert jumps(alice) == []
    alice.keyboard.press("Control+Enter")
    alice.wait_for_url(re.compile(r"/requests/[0-9a-f-]{36}/$"))
    (asked,) = queries.list_mine(actor=story.alice).items
    assert (asked.permission_set, asked.ticket_id, asked.reason) == ("ReadOnlyAccess", "CHG-4712", "Asked without a mouse")


@pytest.mark.usefixtures("story")
def test_whoever_types_faster_than_the_lists_answer_takes_the_first_of_each_by_enter(open_as: OpenAs) -> None:
    alice = open_as("alice")
    begin_at_the_account(alice)
    alice.keyboard.type("payments-pr")
    for _ in range(2):
        alice.keyboard.press("Enter")
    expect(alice.get_by_role("combobox", name="Account")).to_have_value("payments-prod")
    expect(alice.get_by_role("combobox", name="Permission set")).to_have_value("ReadOnlyAccess")
    expect(alice.get_by_label(re.compile("^Ticket"))).to_be_focused()


@pytest.mark.usefixtures("story")
def test_enter_takes_no_choice_of_a_list_for_fewer_letters_that_comes_late(open_as: OpenAs) -> None:
    alice = open_as("alice")
    begin_at_the_account(alice)
    lists = Held(alice, re.compile("/choices/account/.*account=payments-&"))
    alice.keyboard.type("payments-")
    lists.wait_for(1)
    # The list for all letters is asked for when the test says so.
    alice.evaluate("window.later = []; window.setTimeout = (go) => { window.later.push(go); return 0; }")
    alice.keyboard.type("pr")
    alice.keyboard.press("Enter")

    lists.let_go()
    alice.evaluate("new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done)))")
    alice.evaluate("window.later.splice(0).forEach((go) => typeof go === 'function' && go())")

    expect(alice.get_by_role("combobox", name="Account")).to_have_value("payments-prod")


@pytest.mark.usefixtures("story")
def test_the_form_goes_on_to_the_ticket_also_when_the_verdict_of_before_comes_late(open_as: OpenAs) -> None:
    alice = open_as("alice")
    begin_at_the_account(alice)
    verdicts = Held(alice, re.compile("/aws_account/preview/"))
    alice.keyboard.type("payments-pr")
    alice.keyboard.press("Enter")
    expect(alice.get_by_role("option").first).to_have_attribute("aria-selected", "true")
    verdicts.wait_for(1)
    alice.keyboard.press("Enter")
    expect(alice.get_by_label("Why")).to_be_focused()

    verdicts.let_go()

    expect(alice.get_by_label(re.compile("^Ticket"))).to_be_focused()


def test_a_usual_length_that_comes_late_leaves_alone_whoever_types_there(open_as: OpenAs) -> None:
    alice = open_as("alice")
    alice.goto("/requests/new/group/?group=/engineering")
    length = alice.get_by_label("For how long")
    expect(length).to_have_value("1h")
    verdicts = Held(alice, re.compile("/group/preview/"))
    alice.get_by_label("Contributor").check()
    verdicts.wait_for(1)
    # As Tab does.
    length.select_text()

    verdicts.let_go()
    expect(length).to_have_value("1d")
    alice.keyboard.type("10m")

    expect(length).to_have_value("10m")


def test_the_whole_bar_is_in_sight_stands_still_and_paper_is_light(story: Story, open_as: OpenAs) -> None:
    for number in range(25):
        story.ask_for_prod(seconds=3600 + number)
    bob = open_as("bob")
    bob.set_viewport_size({"width": 390, "height": 844})
    tally = Held(bob, re.compile("/fragments/approvals/"))
    bob.goto("/")
    entries = bob.get_by_role("navigation", name="Main").get_by_role("link")
    before = [entry.bounding_box() for entry in entries.all()]
    assert [entry.inner_text() for entry in entries.all()][-1] == "Approvals 25+"
    assert all(box is not None and box["x"] >= 0 and box["x"] + box["width"] <= 390 for box in before)

    with bob.expect_response(re.compile("/fragments/approvals/")):
        tally.let_go()
    assert [entry.bounding_box() for entry in entries.all()] == before

    bob.emulate_media(media="print", color_scheme="dark")
    ink = "getComputedStyle(document.body).color + getComputedStyle(document.querySelector('.panel')).backgroundColor"
    assert bob.evaluate(ink) == "rgb(22, 27, 38)rgb(255, 255, 255)"
