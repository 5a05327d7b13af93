"""Accounts that are lent, looked at: held, frozen, waited for, and one account's page with all that happened to it."""

from __future__ import annotations

import pytest
from playwright.sync_api import expect

from accessportal.access_requests import operations as requests
from accessportal.leases import operations as leases
from tests.browser.conftest import OpenAs
from tests.browser.test_pages import visit
from tests.fixtures_accounts import Borrowed

pytestmark = [pytest.mark.browser, pytest.mark.slow, pytest.mark.django_db(transaction=True)]

_WHY = "It mines coins, as the report of the security team tells: " + "https://reports.example.com/" + "0123456789" * 12


def test_accounts_looked_at(borrowed: Borrowed, open_as: OpenAs) -> None:
    story = borrowed.story
    borrowed.fill(2)
    account_id = borrowed.give_back(borrowed.held()).account_id
    story.clock.advance(600)
    borrowed.pool.clean(account_id)
    held, taken = borrowed.held(), borrowed.held(actor=story.bob)
    leases.freeze(lease_id=held.request_id, reason=_WHY[:400], actor=story.olga, now=story.clock.now())
    requests.freeze_leases(clock=story.clock)
    waiting = borrowed.ask()
    story.carry_out(waiting)
    leases.count_accounts(clock=story.clock)
    alice, olga = open_as("alice"), open_as("olga")

    visit(alice, "/accounts/", "accounts")
    expect(alice.get_by_text("Frozen", exact=True)).to_be_visible()
    visit(alice, f"/requests/{held.request_id}/", "lease-frozen")
    visit(alice, f"/requests/{waiting.request_id}/", "lease-waiting")
    visit(alice, "/requests/new/account_lease/", "lease-form")
    for number, one in enumerate((held, taken)):
        visit(olga, f"/admin/account-pool/{one.account_id}/", f"detail-account-{number}")
    visit(olga, f"/admin/leases/{held.request_id}/", "detail-lease")
    visit(olga, f"/admin/account-pool/{account_id}/do/quarantine/", "quarantine-account")
    visit(olga, "/admin/account-pool/clean/", "clean-accounts")
