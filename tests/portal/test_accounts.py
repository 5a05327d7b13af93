"""The page of the accounts that are lent, through HTTP: the pool at a glance, with the drawing of the sandboxes' page."""

from __future__ import annotations

import re
from datetime import timedelta

import pytest

from accessportal.leases import operations
from accessportal.waiting import operations as waiting
from accessportal.waiting.states import ACCOUNTS
from tests.fixtures_story import Story
from tests.leases.conftest import JOB, AccountsPool
from tests.portal.conftest import SignedIn
from tests.portal.test_journey import HTMX, text_of


@pytest.fixture
def pool(story: Story) -> AccountsPool:
    return AccountsPool(story.clock)


def test_before_the_first_count_and_with_nothing_in_it(pool: AccountsPool, signed_in: SignedIn) -> None:
    alice = signed_in("alice")
    page = alice.get("/accounts/")
    assert "Nothing has been counted yet." in text_of(page)
    assert "You have none at the moment." in text_of(page)
    assert "<figure" not in page.content.decode()

    operations.count_accounts(clock=pool.clock)

    assert "The pool is empty: nobody has put accounts into it." in text_of(alice.get("/accounts/"))


def test_the_pool_is_told_in_figures_drawn_and_in_a_table(pool: AccountsPool, signed_in: SignedIn) -> None:
    pool.fill(3)
    pool.add(["999999999999"])
    operations.count_accounts(clock=pool.clock)
    pool.clock.sleep(600)
    lent = pool.started("carl@example.com")
    operations.count_accounts(clock=pool.clock)

    page = signed_in("alice").get("/accounts/")

    words, html = text_of(page), page.content.decode()
    assert "Free 2 to be had Lent 1 in use Cleaning 0 back soon New 1 cleaned first Failed 0 out of use" in words
    assert "fewest free 2 of 4" in words
    assert re.search(r"Counted Free Lent Cleaning New Failed All .* 2 1 0 1 0 4", words)
    assert '<path class="area new"' in html
    assert "style=" not in html
    assert lent.account_id not in html
    assert "carl@example.com" not in html


def test_none_is_free_and_others_wait(pool: AccountsPool, signed_in: SignedIn) -> None:
    pool.fill(1)
    pool.started("carl@example.com")
    operations.count_accounts(clock=pool.clock)
    alice = signed_in("alice")
    page = alice.get("/accounts/")
    assert "None is free now, and nobody waits." in text_of(page)
    part = {"part": "pool", "range": "24h", "mark": page.context["mark"]}
    assert alice.get("/accounts/", part, headers=HTMX).status_code == 204

    now = pool.clock.now()
    for claim in ("claim-a", "claim-b"):
        waiting.join(line=ACCOUNTS, claim=claim, wants={}, duration_seconds=3600, lapses_at=now + timedelta(days=3), actor=JOB, now=now)

    assert "2 requests wait in line." in text_of(alice.get("/accounts/", part, headers=HTMX))


def test_a_count_that_is_old_is_told_as_old(pool: AccountsPool, signed_in: SignedIn) -> None:
    pool.fill(1)
    operations.count_accounts(clock=pool.clock)
    pool.clock.sleep(1800)

    assert "the job that counts has not come by since" in text_of(signed_in("alice").get("/accounts/"))


@pytest.mark.parametrize("is_set", [True, False])
def test_the_way_there_is_shown_where_accounts_are_cleaned(
    pool: AccountsPool, signed_in: SignedIn, monkeypatch: pytest.MonkeyPatch, is_set: bool
) -> None:
    monkeypatch.setattr(operations, "is_cleaner_set", lambda: is_set)

    assert ('href="/accounts/"' in signed_in("alice").get("/").content.decode()) is is_set
