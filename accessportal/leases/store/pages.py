"""Lists of accounts and leases, by our own indexes: they lag, and whoever acts reads the row again or writes on its version."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator
from contextlib import suppress
from datetime import datetime
from functools import partial

from pynamodb.expressions.condition import Condition

from accessportal.kernel.clock import precise
from accessportal.kernel.pages import Page, Unreadable, UnreadableItem
from accessportal.leases import models
from accessportal.leases.models import AccountItem, LeaseItem
from accessportal.leases.states import SHARDS, Account, AccountState, Lease
from accessportal.leases.store import rows
from accessportal.store.listing import Listing
from accessportal.store.reading import BROKEN, RawItem, count_items, read_as, scan_all

_in_state = Listing("leases.in_state", AccountItem, rows.accounts.record, AccountItem.state_index)
_accounts = Listing("leases.accounts", AccountItem, rows.accounts.record, AccountItem.list_index)
_leases = Listing("leases.leases", LeaseItem, rows.leases.record, LeaseItem.list_index)
_to_clean = Listing("leases.to_clean", AccountItem, rows.accounts.record, AccountItem.due_index)
_to_freeze = Listing("leases.to_freeze", LeaseItem, rows.leases.record, LeaseItem.due_index)


def page_in_state(
    pool: str, state: AccountState, share: int, *, after: str = "", cursor: str | None = None, limit: int = 50
) -> Page[Account]:
    """A share of the accounts of a pool that are in ``state``, from the account id ``after`` on."""
    where = AccountItem.pk > models.account_key(after) if after else None
    return _in_state(models.state_share(pool, state, share), cursor=cursor, limit=limit, where=where, bound=after)


def page_of_accounts(share: int, *, pool: str = "", after: str = "", cursor: str | None = None, limit: int = 50) -> Page[Account]:
    """A share of all accounts, of one ``pool`` or from the place ``after`` on."""
    where: Condition | None = AccountItem.place.startswith(models.place_of(pool, "")) if pool else None
    if after:
        where = AccountItem.place > after
    return _accounts(models.listed_share("accounts", share), cursor=cursor, limit=limit, where=where, bound=(pool, after))


def page_of_leases(share: int, *, pool: str = "", cursor: str | None = None, limit: int = 50) -> Page[Lease]:
    """A share of all leases, or of those of one ``pool``."""
    where: Condition | None = LeaseItem.place.startswith(models.place_of(pool, "")) if pool else None
    return _leases(models.listed_share("leases", share), cursor=cursor, limit=limit, where=where, bound=pool)


def count_in_state(pool: str, state: AccountState, share: int) -> int:
    """How many accounts one share of a pool has in ``state``."""
    return count_items(AccountItem, models.state_share(pool, state, share), AccountItem.state_index)


def to_clean(*, until: datetime, beyond: datetime, past: Callable[[Unreadable], object]) -> Iterator[Account]:
    """What cleaning is to look at: due by ``until``, the earliest of each share first, or put off beyond what can be. The shares come in
    any order: a run that can't do all leaves others each time."""
    for share in random.sample(range(SHARDS), SHARDS):
        for where in (AccountItem.due_at <= precise(until), AccountItem.due_at > precise(beyond)):
            yield from _to_clean.every(models.listed_share("clean", share), where=where, past=past)


def to_freeze(*, until: datetime, beyond: datetime, past: Callable[[Unreadable], object]) -> Iterator[Lease]:
    """What is to be frozen or unfrozen, as :func:`to_clean`."""
    for share in range(SHARDS):
        for where in (LeaseItem.due_at <= precise(until), LeaseItem.due_at > precise(beyond)):
            yield from _to_freeze.every(models.listed_share("freeze", share), where=where, past=past)


def every_account(*, past: Callable[[Unreadable], object]) -> Iterator[Account]:
    """All accounts by our index."""
    for share in range(SHARDS):
        yield from _accounts.every(models.listed_share("accounts", share), past=past)


def every_lease(*, past: Callable[[Unreadable], object]) -> Iterator[Lease]:
    """All leases by our index."""
    for share in range(SHARDS):
        yield from _leases.every(models.listed_share("leases", share), past=past)


def every_row(*, past: Callable[[Unreadable], object]) -> Iterator[Account | Lease]:
    """Every account and lease of the table, strongly read. For checks, not for pages."""
    found = scan_all(AccountItem, rows.accounts.record, stand_in=partial(_other_row, past), segment=0, segments=1)
    return (row for row in found if row is not None)


def _other_row(past: Callable[[Unreadable], object], raw: RawItem) -> Account | Lease | None:
    """What is no account, or none that can be read; by itself it says what is wrong with it."""
    word, _, one = str(raw["pk"]["S"]).partition("#")
    try:
        if word == models.LEASE:
            with suppress(*BROKEN):
                return read_as(rows.leases.record, LeaseItem.from_raw_data(dict(raw)))
            return rows.find_lease(one)
        return rows.get_account(one) if word == models.ACCOUNT else None
    except UnreadableItem as error:
        past(error.item)
        return None


def pools_in(share: int) -> Iterator[str]:
    """The pools of one share of the accounts: one request for each, however many accounts they have."""
    after = ""
    while page := page_of_accounts(share, after=after, limit=1).items:
        yield page[0].pool
        after = models.behind_pool(page[0].pool)
