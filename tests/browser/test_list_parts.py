"""A list whose records lie in shares goes on by itself, and stands in one order."""

from __future__ import annotations

import pytest
from playwright.sync_api import expect

from tests.browser.conftest import OpenAs
from tests.console.test_list_parts import grant, numbers_in
from tests.console.test_long_lists import copy
from tests.fixtures_story import Story

pytestmark = [pytest.mark.browser, pytest.mark.slow, pytest.mark.django_db(transaction=True)]


def test_what_ends_soon_is_in_order_over_all_shares_and_counted(story: Story, open_as: OpenAs) -> None:
    early, late = numbers_in(range(8)), numbers_in(range(8, 16))
    # The first of the first part ends first, then the first of the other one, and so on.
    ending = [number for pair in zip(early, late, strict=True) for number in pair]
    for place, number in enumerate(ending):
        grant(story, number, seconds=600 * (place + 1))
    olga = open_as("olga")

    olga.goto("/admin/approvals/")
    expect(olga.locator("#rows td.col-who")).to_have_text([f"bot-{number}" for number in ending])
    olga.get_by_label(f"bot-{late[0]}", exact=True).check()
    olga.get_by_label("Select all on this page").check()
    expect(olga.get_by_role("button", name=f"Revoke {len(ending)}…")).to_be_enabled()
    expect(olga.get_by_role("link", name="Next page")).to_have_count(0)

    olga.goto("/admin/approvals/?pattern=scope&q=tenant:acme")
    expect(olga.get_by_text("In tenant:acme: 6 approvals")).to_be_visible()
    expect(olga.locator("#rows tr")).to_have_count(len(ending))
    olga.goto("/admin/approvals/?pattern=scope&q=tenant:other")
    expect(olga.get_by_text("No approvals in this scope")).to_be_visible()


def test_all_on_the_page_are_also_those_that_were_added(story: Story, open_as: OpenAs) -> None:
    others = story.ask_to_join(role="contributor")
    mine = [story.ask_for_prod() for _ in range(3)]
    copy(others, 510)
    bob = open_as("bob")

    bob.goto("/admin/requests/?pattern=waiting")
    expect(bob.locator("#rows tr")).to_have_count(len(mine))
    bob.get_by_role("button", name=f"Approve all {len(mine)}…").click()
    expect(bob.get_by_role("button", name=f"Approve {len(mine)}", exact=True)).to_be_visible()
