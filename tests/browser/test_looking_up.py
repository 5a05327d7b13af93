"""People found by a few letters, without knowing their addresses; and what their list and their pages tell."""

from __future__ import annotations

import re

import pytest
from playwright.sync_api import expect

from accessportal.directory import operations as directory
from accessportal.directory.states import GroupRole, State
from tests.browser.conftest import OpenAs
from tests.browser.keyboard import press, tab_to, write
from tests.browser.looks import look_at
from tests.fixtures_story import Story
from tests.portal.test_groups import SETUP

pytestmark = [pytest.mark.browser, pytest.mark.slow, pytest.mark.django_db(transaction=True)]


def test_a_person_is_chosen_by_name_with_the_keyboard_alone(story: Story, open_as: OpenAs) -> None:
    olga = open_as("olga")
    olga.goto("/groups/at/engineering/payments/")
    tab_to(olga, "Add a person")
    press(olga, "Enter")
    field = olga.get_by_role("combobox", name="E-mail address")
    expect(field).to_be_focused()
    write(olga, "osei")
    expect(olga.get_by_role("option", name=re.compile("Sam Osei"))).to_be_visible()
    look_at(olga, "picker-in-a-sheet", full=False)
    press(olga, "Enter")
    expect(field).to_have_value("sam@example.com")
    # A whole address is meant itself, also where another one begins so, and Enter sends the form.
    field.fill("sam@example.co")
    expect(olga.get_by_role("option", name=re.compile("Sam Osei"))).to_be_visible()
    press(olga, "Tab")
    expect(field).to_have_value("sam@example.co")
    field.fill("sam@example.com")
    tab_to(olga, "Add")
    press(olga, "Enter")
    expect(olga.get_by_text("Added sam@example.com to Payments")).to_be_visible()


def test_lists_are_narrowed_by_people_and_groups_of_whom_a_few_letters_are_known(story: Story, open_as: OpenAs) -> None:
    olga = open_as("olga")
    olga.goto("/admin/requests/?pattern=all")
    who = olga.get_by_role("combobox", name="Person or group it is for")
    who.press_sequentially("pay")
    expect(olga.get_by_role("option", name=re.compile("Payments"))).to_be_visible()
    who.fill("")
    who.press_sequentially("al")
    expect(olga.get_by_role("option", name=re.compile("Alice Park"))).to_be_visible()
    look_at(olga, "picker-in-a-list", full=False)
    who.press("Enter")
    expect(who).to_have_value("alice@example.com")
    who.press("Enter")
    expect(olga).to_have_url(re.compile("q=alice%40example.com"))
    # Each part of the days, and the buttons of their calendars, show that they have the focus.
    olga.get_by_label("Ticket", exact=True).focus()
    tab_to(olga, "Show")

    olga.goto("/admin/rules/explain/")
    olga.get_by_role("combobox", name="Person or group").press_sequentially("nobody")
    expect(olga.get_by_text("Nobody whom you may see begins so.").first).to_be_visible()
    # Where others than people are named, too, what is typed stays.
    olga.goto("/admin/approvals/grant/")
    identity = olga.get_by_role("combobox", name="Identity")
    identity.press_sequentially("ali")
    expect(olga.get_by_role("option", name=re.compile("Alice Park"))).to_be_visible()
    identity.press("Tab")
    expect(identity).to_have_value("ali")
    # At one go: the answer to fewer letters shows her too, and the arrow would be lost with it.
    identity.fill("alice p")
    expect(olga.get_by_role("option", name=re.compile("Alice Park"))).to_be_visible()
    identity.press("ArrowDown")
    identity.press("Enter")
    expect(identity).to_have_value("alice@example.com")
    # Who looks nobody up types the address, and no list opens.
    bob = open_as("bob")
    bob.goto("/admin/rules/explain/")
    expect(bob.get_by_role("textbox", name="Person or group")).to_be_visible()


def test_people_looked_at(story: Story, open_as: OpenAs) -> None:
    now = story.clock.now()
    for number in range(9):
        group = f"/engineering/payments/a-team-with-a-rather-long-name-{number}"
        directory.create_group(group_id=group, name=f"Team {number}", description="", actor=SETUP, now=now)
        directory.grant_membership(email="alice@example.com", group_id=group, role=GroupRole.READER, actor=SETUP, now=now)
    for held in (story.ask(), story.ask_to_join(), story.ask(permission_set="ReadOnlyAccess")):
        story.carry_out(held)
    story.ask_for_prod()
    directory.set_person_state(email="mallory@example.com", state=State.DISABLED, actor=SETUP, now=now)
    olga = open_as("olga")

    olga.goto("/admin/people/")
    alice = olga.get_by_role("row").filter(has_text="alice@example.com")
    expect(alice).to_contain_text("3 active")
    expect(alice).to_contain_text("1 waiting")
    expect(alice).to_contain_text("and 9 more")
    look_at(olga, "people")
    for pattern in ("disabled", "access", "group&q=/engineering", "group"):
        olga.goto(f"/admin/people/?pattern={pattern}")
        expect(olga.locator("#results")).to_be_visible()
        look_at(olga, f"people-{pattern.partition('&')[0]}")

    # The whole row opens the page, unless a row is ticked: then another one is to be.
    olga.goto("/admin/people/")
    since = alice.get_by_role("cell").last
    olga.get_by_role("checkbox", name=re.compile("Bob")).check()
    since.click()
    expect(olga).to_have_url(re.compile("/admin/people/$"))
    olga.get_by_role("checkbox", name=re.compile("Bob")).uncheck()
    since.click()
    expect(olga).to_have_url(re.compile("/people/alice@example.com/$"))
    # What further groups give comes when one looks.
    olga.locator("#access-title").scroll_into_view_if_needed()
    expect(olga.get_by_text(re.compile("more groups give"))).to_have_count(0)
    look_at(olga, "person-of-many-groups")
    olga.get_by_role("link", name="Disable").click()
    expect(olga.get_by_role("dialog")).to_contain_text("Ends with this: 3")
    look_at(olga, "disable-sheet", full=False)
