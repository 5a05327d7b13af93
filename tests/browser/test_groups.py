"""Groups and people, looked at: at two sizes and in both colours, and managed by keyboard alone."""

from __future__ import annotations

import re
from datetime import timedelta

import pytest
from playwright.sync_api import expect

from accessportal.access_requests.states import AccessRequest
from accessportal.directory import operations as directory
from accessportal.directory.states import Changed, GroupRole, Mirrored, State
from accessportal.kernel.actors import system
from accessportal.mirror import queries as mirror_queries
from accessportal.mirror.states import MirrorWork
from tests.browser.conftest import OpenAs
from tests.browser.keyboard import press, tab_to, write
from tests.browser.looks import look_at
from tests.browser.people import line, preview, send, state
from tests.browser.test_pages import visit
from tests.fixtures_story import Story

pytestmark = [pytest.mark.browser, pytest.mark.slow, pytest.mark.django_db(transaction=True)]

_SETUP = system("setup")
_LONG = "Platform Engineering, Reliability, Observability and Everything Else That Nobody Else Wanted to Own"
_MAXIMILIANA = "maximiliana.featherstonehaugh-cholmondeley@platform-engineering.example.com"
_PAYMENTS = "/groups/at/engineering/payments/"


@pytest.fixture
def big_house(story: Story) -> Story:
    """Long names, six levels, a disabled group, members of every sort."""
    now = story.clock.now()
    for group_id, name in (
        ("/engineering/platform-reliability-observability-and-everything-else", _LONG),
        ("/engineering/payments/ledger", "Ledger"),
        ("/engineering/payments/ledger/europe", "Ledger Europe"),
        ("/engineering/payments/ledger/europe/central", "Ledger Central Europe"),
        ("/engineering/payments/old", "Old payments"),
    ):
        directory.create_group(group_id=group_id, name=name, description="Keeps the books whole.", actor=_SETUP, now=now)
    directory.set_group_state(group_id="/engineering/payments/old", state=State.DISABLED, actor=_SETUP, now=now)
    people = [
        ("dana@example.com", "Dana Osei", GroupRole.READER),
        (_MAXIMILIANA, "Maximiliana Featherstonehaugh-Cholmondeley", GroupRole.ADMIN),
    ]
    for email, name, role in people:
        directory.create_person(email=email, name=name, group_id="/engineering/payments", role=role, actor=_SETUP, now=now)
    directory.set_person_state(email="dana@example.com", state=State.DISABLED, actor=_SETUP, now=now)
    return story


def admitted(story: Story, group: str = "/engineering", role: str = "contributor") -> AccessRequest:
    """Alice asked, Gina admitted her for a day."""
    asked = story.ask_to_join(group, role, seconds=86_400)
    story.approve(asked, actor=story.gina)
    return story.carry_out(asked)


def test_groups_looked_at(big_house: Story, open_as: OpenAs) -> None:
    admitted(big_house)
    alice, mallory = open_as("alice"), open_as("mallory")
    visit(alice, "/groups/", "groups")
    alice.locator("summary", has_text="Groups below Engineering").click()
    expect(alice.get_by_role("link", name="Payments", exact=True).last).to_be_visible()
    alice.locator("summary", has_text="Groups below Payments").click()
    expect(alice.get_by_role("link", name="Ledger", exact=True)).to_be_visible()
    look_at(alice, "groups-open")
    alice.get_by_role("searchbox").press_sequentially("ledg")
    expect(alice.locator("#tree mark").first).to_be_visible()
    look_at(alice, "groups-found")
    alice.get_by_role("searchbox").fill("nonsense")
    expect(alice.get_by_text("No group’s name or id contains")).to_be_visible()
    look_at(alice, "groups-nothing-found")
    visit(mallory, "/groups/", "groups-of-nobody")
    visit(mallory, _PAYMENTS, "group-of-a-stranger")
    visit(alice, _PAYMENTS, "group-of-a-member")


def test_one_group_managed(big_house: Story, open_as: OpenAs) -> None:
    admitted(big_house)
    gina = open_as("gina")
    visit(gina, "/groups/at/engineering/", "group-with-a-guest")
    visit(gina, _PAYMENTS, "group-of-an-admin")
    visit(gina, "/groups/at/engineering/payments/old/", "group-disabled")
    visit(gina, "/groups/at/engineering/platform-reliability-observability-and-everything-else/", "group-long-and-empty")

    gina.goto(_PAYMENTS)
    gina.get_by_role("link", name="Add a person").click()
    sheet = gina.get_by_role("dialog")
    expect(sheet).to_contain_text("Add a person to Payments")
    look_at(gina, "group-add-sheet", full=False)
    sheet.get_by_label("E-mail address").fill("nina@example.com")
    sheet.get_by_role("button", name="Add").click()
    expect(gina.get_by_text("Nobody in the directory has this address.")).to_be_visible()
    look_at(gina, "group-add-somebody-new")
    visit(gina, "/groups/move/at/engineering/payments/", "group-move")
    visit(gina, "/groups/create/at/engineering/payments/", "group-create")
    gina.goto("/groups/delete/at/engineering/payments/")
    gina.get_by_role("button", name="Delete group").click()
    expect(gina.get_by_role("alert")).to_be_visible()
    look_at(gina, "group-delete-refused")


def test_people_looked_at(big_house: Story, open_as: OpenAs) -> None:
    admitted(big_house)
    big_house.carry_out(big_house.ask())
    alice, olga, mallory = open_as("alice"), open_as("olga"), open_as("mallory")
    visit(alice, "/people/alice@example.com/", "person-self")
    visit(olga, "/people/gina@example.com/", "person-of-an-operator")
    visit(olga, "/people/dana@example.com/", "person-disabled")
    visit(mallory, "/people/mallory@example.com/", "person-empty")
    olga.goto("/people/dana@example.com/")
    olga.get_by_role("link", name="Delete").click()
    expect(olga.get_by_role("dialog")).to_contain_text("Delete Dana Osei?")
    look_at(olga, "person-delete-sheet", full=False)


def test_asking_looked_at(big_house: Story, open_as: OpenAs) -> None:
    alice = open_as("alice")
    visit(alice, "/requests/new/", "kinds-both")
    visit(alice, "/requests/new/group/", "group-form-empty")
    line(alice, "Group").press_sequentially("engin")
    expect(alice.get_by_role("option").first).to_be_visible()
    look_at(alice, "group-form-choices")
    alice.get_by_role("option").first.click()
    expect(preview(alice)).to_contain_text("Approved at once")
    alice.get_by_label("Contributor").check()
    expect(preview(alice)).to_contain_text("Gina Falk")
    look_at(alice, "group-form-waits")
    alice.get_by_role("button", name="Send request").click()
    expect(alice.get_by_text("Say why you need it.")).to_be_visible()
    look_at(alice, "group-form-errors")


def test_alice_asks_gina_admits_her_from_the_queue_and_the_end_comes(story: Story, open_as: OpenAs) -> None:
    alice, gina = open_as("alice"), open_as("gina")
    alice.goto("/groups/at/engineering/")
    alice.get_by_role("link", name="Ask to join").click()
    expect(line(alice, "Group")).to_have_value("/engineering")
    alice.get_by_label("Contributor").check()
    alice.get_by_label("For how long").fill("10m")
    expect(preview(alice)).to_contain_text("Gina Falk")
    alice.get_by_label("Why").fill("On call this week")
    send(alice)
    expect(state(alice)).to_have_text("Waiting for approval")
    look_at(alice, "group-request-waiting")

    gina.goto("/")
    gina.get_by_role("link", name=re.compile(r"Approvals \d")).click()
    row = gina.get_by_role("row").filter(has_text="On call this week")
    expect(row).to_contain_text("Engineering · contributor")
    look_at(gina, "group-queue")
    (asked,) = story.pending_of("alice@example.com")
    row.get_by_role("button", name="Approve").click()
    expect(row).to_have_count(0)
    story.carry_out(asked)
    expect(state(alice)).to_have_text("Active")
    look_at(alice, "group-request-active")
    gina.goto("/groups/at/engineering/")
    expect(gina.get_by_role("region", name="Members")).to_contain_text("Alice Park")

    story.clock.advance(600)
    story.tick()
    story.tick()
    # What just runs is looked at every 15 s.
    expect(state(alice)).to_have_text("Ended")
    look_at(alice, "group-request-ended")
    gina.reload()
    expect(gina.get_by_role("region", name="Members")).not_to_contain_text("Alice Park")


def test_members_managed_by_keyboard(story: Story, open_as: OpenAs) -> None:
    gina = open_as("gina")
    gina.goto(_PAYMENTS)
    tab_to(gina, "Add a person")
    press(gina, "Enter")
    expect(gina.get_by_role("dialog")).to_be_visible()
    expect(gina.get_by_label("E-mail address")).to_be_focused()
    write(gina, "sam@example.com")
    tab_to(gina, "Reader.*")
    press(gina, "ArrowDown")
    expect(gina.get_by_label("Contributor")).to_be_checked()
    tab_to(gina, "Add")
    press(gina, "Enter")
    expect(gina.get_by_text("Added sam@example.com to Payments as contributor.")).to_be_visible()

    tab_to(gina, "Remove Sam Osei")
    press(gina, "Enter")
    expect(gina.get_by_role("dialog")).to_contain_text("Remove this person from Payments?")
    press(gina, "Escape")
    expect(gina.get_by_role("link", name="Remove Sam Osei")).to_be_focused()
    press(gina, "Enter")
    expect(gina.get_by_role("dialog")).to_be_visible()
    # The way out has the focus, so that a second Enter harms nobody.
    expect(gina.get_by_role("link", name="Not now")).to_be_focused()
    press(gina, "Shift+Tab", "Enter")
    expect(gina.get_by_text("Removed sam@example.com from Payments.")).to_be_visible()
    assert story.role_of("sam@example.com", "/engineering/payments") is None

    gina.goto("/groups/")
    tab_to(gina, "Groups below Engineering")
    press(gina, "Enter")
    expect(gina.locator("[id='at-/engineering/payments']")).to_be_visible()
    tab_to(gina, "Payments")
    press(gina, "Enter")
    expect(gina.get_by_role("heading", level=1)).to_have_text("Payments")


def test_the_focus_stays_where_a_quick_hand_moved_it(story: Story, open_as: OpenAs) -> None:
    gina = open_as("gina")
    gina.goto(_PAYMENTS)
    # As on a machine that is too busy to settle the sheet at once.
    gina.evaluate("htmx.config.defaultSettleDelay = 400")
    tab_to(gina, "Remove Alice Park")
    press(gina, "Enter")
    expect(gina.get_by_role("link", name="Not now")).to_be_focused()
    press(gina, "Shift+Tab")
    gina.wait_for_function("!document.querySelector('.htmx-settling')")
    expect(gina.get_by_role("button", name="Remove")).to_be_focused()


def test_what_cognito_has_not_confirmed_is_not_told_as_done(story: Story, open_as: OpenAs, monkeypatch: pytest.MonkeyPatch) -> None:
    now = story.clock.now()
    since = now - timedelta(seconds=5)
    work = MirrorWork("person#sam@example.com", "t", since=since, due_at=now, lease_until=None, attempts=3, error="Cognito did not answer.")
    behind = [work]
    real = directory.revoke_membership
    directory.grant_membership(email="sam@example.com", group_id="/engineering/payments", role=GroupRole.READER, actor=_SETUP, now=now)
    monkeypatch.setattr(directory, "revoke_membership", lambda **given: Changed(real(**given).record, Mirrored(is_done=False)))
    monkeypatch.setattr(mirror_queries, "find_pending", lambda entity: next((one for one in behind if one.entity == entity), None))
    gina = open_as("gina")
    gina.goto("/groups/remove/at/engineering/payments/?email=sam@example.com")
    gina.get_by_role("button", name="Remove").click()
    expect(gina.get_by_text("is being removed from Payments, Cognito has not confirmed yet.")).to_be_visible()
    look_at(gina, "group-cognito-behind")

    behind.clear()
    expect(gina.get_by_text("Removed sam@example.com from Payments. Cognito has confirmed it.")).to_be_visible()
    look_at(gina, "group-cognito-followed")


def test_on_a_phone_a_list_stands_below_its_heading(story: Story, open_as: OpenAs) -> None:
    gina = open_as("gina")
    gina.set_viewport_size({"width": 390, "height": 844})
    gina.goto("/groups/at/engineering/")

    heading = gina.get_by_role("heading", name="Groups below").bounding_box()
    first = gina.locator(".tree").get_by_role("link", name="Payments", exact=True).bounding_box()
    assert heading is not None
    assert first is not None
    assert abs(heading["x"] - first["x"]) < 1


def test_without_javascript_the_tree_opens_and_a_role_is_changed(story: Story, open_as: OpenAs) -> None:
    gina = open_as("gina", javascript=False)
    gina.goto("/groups/")
    gina.locator("summary", has_text="Groups below Engineering").click()
    gina.get_by_role("link", name="Show 1 group below Engineering").click()
    expect(gina.get_by_role("link", name="Payments", exact=True).last).to_be_visible()
    gina.get_by_label("Find a group by name or id").fill("pay")
    gina.get_by_role("button", name="Find").click()
    gina.get_by_role("link", name="Payments", exact=True).last.click()
    gina.get_by_role("link", name="Change role of Alice Park").click()
    gina.get_by_label("Admin").check()
    gina.get_by_role("button", name="Change role").click()
    expect(gina.get_by_text("alice@example.com is admin of Payments now")).to_be_visible()
