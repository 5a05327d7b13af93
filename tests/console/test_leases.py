"""The pool of accounts at the admin pages: lists, one account with its holders and cleanings, deeds, and the forecast."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta

import pytest
from django.test import Client

from accessportal.audit.states import AuditEvent
from accessportal.console.resources.account_pool import chapters_of
from accessportal.leases import operations, queries
from accessportal.leases.models import AccountItem
from accessportal.leases.states import AccountState, LeaseState
from accessportal.waiting import operations as waiting
from accessportal.waiting.states import ACCOUNTS
from tests.fixtures_story import Story
from tests.leases.conftest import JOB, AccountsPool
from tests.portal.test_journey import text_of

SignIn = Callable[[str], Client]


@pytest.fixture
def pool(story: Story) -> AccountsPool:
    return AccountsPool(story.clock)


@pytest.fixture
def olga(as_person: SignIn) -> Client:
    return as_person("olga")


def page(client: Client, address: str, **given: str) -> str:
    answer = client.get(address, given)
    assert answer.status_code == 200, answer.content.decode()
    return text_of(answer)


def test_an_empty_pool(pool: AccountsPool, olga: Client) -> None:
    found = page(olga, "/admin/account-pool/")

    assert "No account is in the pool" in found
    assert "The pool was never counted" in found
    assert "When the pool runs dry is not known." in found
    assert "No account is lent" in page(olga, "/admin/leases/")


def test_accounts_are_listed_by_state_and_pool(pool: AccountsPool, olga: Client, story: Story) -> None:
    first, *_ = pool.fill(3)
    pool.add(["999999999999"], pool="gpu")
    lease = pool.started()
    operations.quarantine(
        account_id=next(one for one in (first, "222222222222") if one != lease.account_id),
        reason="smoke",
        actor=story.olga,
        now=pool.clock.now(),
    )
    operations.count_accounts(clock=pool.clock)

    everything = page(olga, "/admin/account-pool/")
    assert all(text in everything for text in ("lab 999999999999", "alice@example.com", "Out of use", "smoke"))
    assert "Pool Lent Free To be cleaned New Out of use default 1 1 0 0 1 gpu 0 0 0 1 0" in everything
    assert "lab 999999999999" not in page(olga, "/admin/account-pool/", q="default")
    lent = page(olga, "/admin/account-pool/", pattern="leased")
    assert "alice@example.com" in lent
    assert "smoke" not in lent
    assert "smoke" in page(olga, "/admin/account-pool/", pattern="failed", q="default")
    assert "No account is out of use" in page(olga, "/admin/account-pool/", pattern="failed", q="gpu")


def test_a_long_list_goes_on_over_pools_and_shares(pool: AccountsPool, olga: Client) -> None:
    pool.add([f"{number:012d}" for number in range(1, 31)])
    pool.add([f"{number:012d}" for number in range(101, 131)], pool="gpu")
    address, seen = "/admin/account-pool/?pattern=initial", list[str]()
    for _ in range(5):
        answer = olga.get(address)
        seen += [row.key for row in answer.context["rows"]]
        address = answer.context["next_url"]
        if not address:
            break

    assert len(seen) == len(set(seen)) == 60
    assert olga.get("/admin/account-pool/?cursor=forged").status_code == 400


def test_a_row_that_can_not_be_read_is_named_and_the_rest_is_there(pool: AccountsPool, olga: Client) -> None:
    first, second = pool.fill(2)
    AccountItem(f"account_id#{first}").update([AccountItem.state.set("nonsense")])
    operations.count_accounts(clock=pool.clock)

    found = page(olga, "/admin/account-pool/")

    assert f"account_id#{first}" in found
    assert f"lab {second}" in found
    assert "1 row of the pool can’t be read" in found
    assert olga.get(f"/admin/account-pool/{first}/").status_code == 503


def test_one_account_tells_all_its_holders_and_cleanings(pool: AccountsPool, olga: Client) -> None:
    (account_id,) = pool.fill(1)
    first = pool.started()
    pool.clock.sleep(3600)
    pool.let_go(first)
    again = pool.revive(first, "claim-2")
    pool.start(again, claim="claim-2")
    pool.let_go(again, "claim-2")
    pool.clock.sleep(600)
    pool.clean(account_id)
    pool.started("carl@example.com")

    found = page(olga, f"/admin/account-pool/{account_id}/")

    assert "Lent 1111 1111 1111 · pool default" in found
    assert found.count("Cleaned: 3 found, 3 removed, nothing left Certificate Found 3 Left 0 Removed 3") == 2
    assert "carl@example.com" in found
    assert "Holds it now" in found
    assert "taken back by its last holder, given back" in found
    assert "PowerUserAccess" in found
    history = page(olga, f"/admin/account-pool/{account_id}/history/", check="1")
    assert "Cleaned, free again" in history
    assert "whole" in history


def test_the_chapters_of_a_history_that_begins_in_the_middle(pool: AccountsPool) -> None:
    (account_id,) = pool.fill(1)
    lease = pool.started()
    pool.let_go(lease)
    events: list[AuditEvent] = list(queries.history_of_account(account_id=account_id).items)

    (only,) = chapters_of(events[:1])

    assert (only.user, only.lease, only.how) == ("alice@example.com", lease.lease_id, "given back")
    kinds = [bool(one.user) for one in chapters_of(events[::-1])]
    assert kinds == [True, False]


def _do(client: Client, address: str, **given: str) -> str:
    """Ask, and press the button with the mark of what was described."""
    asked = client.post(address)
    key = address.split("/")[3]
    mark = asked.context["mark"]
    return text_of(client.post(address, {"confirmed": "yes", f"mark-{key}": mark, **given}, follow=True))


def test_quarantine_restore_and_retire(pool: AccountsPool, olga: Client) -> None:
    (account_id,) = pool.fill(1)
    at = f"/admin/account-pool/{account_id}"
    assert "out of use: nobody gets it until it is restored" in _do(olga, f"{at}/do/quarantine/", reason="Smoke in the log.")
    assert pool.get(account_id).state is AccountState.FAILED
    assert olga.post(f"{at}/do/quarantine/", {"confirmed": "yes", "reason": "Again."}).status_code == 409
    assert "Smoke in the log." in page(olga, "/admin/account-pool/", pattern="failed")

    assert "is to be cleaned, and free after that" in _do(olga, f"{at}/do/restore/")
    assert pool.get(account_id).state is AccountState.DIRTY

    assert "has left the pool" in _do(olga, f"{at}/do/retire/", reason="Closed.")
    assert olga.get(f"{at}/").status_code == 404


def test_of_a_lent_account_the_deeds_wait_for_its_return(pool: AccountsPool, olga: Client) -> None:
    (account_id,) = pool.fill(1)
    pool.started()
    at = f"/admin/account-pool/{account_id}"
    assert "alice@example.com keeps it until it is given back" in text_of(olga.post(f"{at}/do/retire/"))
    assert "leaves the pool when it is given back" in _do(olga, f"{at}/do/retire/", reason="Closed.")
    assert "leaves when it is given back" in page(olga, f"{at}/")
    assert "stays in the pool" in _do(olga, f"{at}/do/restore/")
    assert not pool.get(account_id).is_retiring


def test_what_changed_since_it_was_described_is_described_again(pool: AccountsPool, olga: Client) -> None:
    (account_id,) = pool.fill(1)
    at = f"/admin/account-pool/{account_id}/do/quarantine/"
    mark = olga.post(at).context["mark"]
    pool.started()

    answer = olga.post(at, {"confirmed": "yes", f"mark-{account_id}": mark, "reason": "Smoke."})

    assert answer.status_code == 409
    assert "alice@example.com keeps it" in text_of(answer)
    assert not pool.get(account_id).reason


def test_the_leases_of_a_person_are_found_by_their_address_in_any_letters(pool: AccountsPool, olga: Client) -> None:
    pool.fill(1)
    lease = pool.started()

    answer = olga.get("/admin/leases/", {"pattern": "person", "q": "Alice@Example.com"})

    assert [row.key for row in answer.context["rows"]] == [lease.lease_id]
    assert "pool default, hand-over 1" in text_of(answer)


def test_freeze_and_unfreeze(pool: AccountsPool, olga: Client) -> None:
    pool.fill(1)
    lease = pool.started()
    at = f"/admin/leases/{lease.lease_id}"
    found = page(olga, f"{at}/")
    assert "alice@example.com on 111111111111" in found
    assert "Not known: no figure has come yet." in found
    assert "It is not frozen." in text_of(olga.get(f"{at}/do/unfreeze/", follow=True))

    assert "goes off" in _do(olga, f"{at}/do/freeze/", reason="Spends too much.")
    assert "Being frozen Spends too much." in page(olga, f"{at}/")
    operations.note_access_off(lease_id=lease.lease_id, actor=JOB, now=pool.clock.now())
    assert "Frozen Spends too much." in page(olga, f"{at}/")
    assert "Spends too much." in page(olga, "/admin/leases/")

    assert "goes on again" in _do(olga, f"{at}/do/unfreeze/")
    assert queries.get_lease(lease_id=lease.lease_id).wanted is LeaseState.ACTIVE


@pytest.mark.parametrize(("name", "status"), [("ana", 403), ("bob", 403), ("mallory", 403)])
def test_only_operators_change_anything(pool: AccountsPool, as_person: SignIn, name: str, status: int) -> None:
    (account_id,) = pool.fill(1)
    lease = pool.started()
    client = as_person(name)
    for address in (
        f"/admin/account-pool/{account_id}/do/quarantine/",
        f"/admin/account-pool/{account_id}/do/retire/",
        f"/admin/leases/{lease.lease_id}/do/freeze/",
        "/admin/account-pool/clean/",
    ):
        assert client.post(address, {"confirmed": "yes", "reason": "Mine now."}).status_code == status
    assert not pool.get(account_id).reason


def test_cleaning_is_ordered_once_it_is_asked(pool: AccountsPool, olga: Client, monkeypatch: pytest.MonkeyPatch) -> None:
    ordered: list[str] = []
    monkeypatch.setattr("accessportal.console.cleaning.after_commit", ordered.append)
    for answer in (olga.get("/admin/account-pool/clean/"), olga.post("/admin/account-pool/clean/")):
        assert "No cleaner is set, so nothing is cleaned." in text_of(answer)
        assert "Clean what is due" not in text_of(answer)
    assert ordered == []
    monkeypatch.setattr("accessportal.console.cleaning.is_cleaner_set", lambda: True)
    assert "Clean what is due" in page(olga, "/admin/account-pool/clean/")
    assert ordered == []

    answer = olga.post("/admin/account-pool/clean/", follow=True)

    assert ordered == ["clean_accounts"]
    assert "Cleaning is ordered." in text_of(answer)


def test_the_forecast(pool: AccountsPool, olga: Client) -> None:
    pool.fill(3)
    waiting.note_cleanings(line=ACCOUNTS, seconds=[600])
    operations.count_accounts(clock=pool.clock)
    assert "When the pool runs dry is not known." in page(olga, "/admin/account-pool/")
    pool.clock.sleep(60)
    pool.started(seconds=30 * 86_400)
    pool.clock.sleep(86_340)
    operations.count_accounts(clock=pool.clock)
    found = page(olga, "/admin/account-pool/")
    assert "The last free account goes about 5 Mar 09:00 UTC , if as many are lent as of late, 1 a day" in found
    pool.started(seconds=86_400)
    pool.started(seconds=30 * 86_400)
    pool.clock.sleep(600)
    operations.count_accounts(clock=pool.clock)
    found = page(olga, "/admin/account-pool/")
    assert "The pool is dry: nothing is free that nobody waits for. Whoever asks now can expect an account about 4 Mar 09:10 UTC" in found


def test_the_forecast_knows_those_who_wait(pool: AccountsPool, olga: Client) -> None:
    pool.fill(1)
    waiting.note_cleanings(line=ACCOUNTS, seconds=[600])
    operations.count_accounts(clock=pool.clock)
    pool.started()
    pool.clock.sleep(6 * 3600)
    operations.count_accounts(clock=pool.clock)
    now = pool.clock.now()
    for claim in ("claim-a", "claim-b"):
        waiting.join(line=ACCOUNTS, claim=claim, wants={}, duration_seconds=3600, lapses_at=now + timedelta(days=3), actor=JOB, now=now)

    found = page(olga, "/admin/account-pool/")

    assert "2 in line" in found
    assert "Not enough comes back within two weeks for whoever asks now." in found
