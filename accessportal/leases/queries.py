"""Reads of the pool of accounts."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from datetime import datetime
from typing import TypeVar

from accessportal.audit import queries as audit
from accessportal.audit.states import AuditEvent
from accessportal.kernel.errors import InvalidRequest
from accessportal.kernel.moments import furthest
from accessportal.kernel.pages import Page, Unreadable
from accessportal.leases import policy
from accessportal.leases.states import SHARDS, Account, AccountState, Count, Lease, LentTo, NoSuchAccount, NoSuchLease
from accessportal.leases.store import counts as kept
from accessportal.leases.store import pages, rows

R = TypeVar("R", Account, Lease)
may_operate = policy.may_operate
find_lease = rows.find_lease
find_leases = rows.find_leases
every_row = pages.every_row
last_count = kept.last_count
still = rows.still


def get_account(*, account_id: str) -> Account:
    """Strongly read.

    :raises NoSuchAccount: when the pool has none with this id.
    """
    account = rows.get_account(account_id)
    if account is None:
        raise NoSuchAccount
    return account


def get_lease(*, lease_id: str) -> Lease:
    """Strongly read.

    :raises NoSuchLease: when there is none, or it has ended.
    """
    lease = find_lease(lease_id)
    if lease is None:
        raise NoSuchLease
    return lease


def lent_to(*, lease_id: str) -> LentTo | None:
    """Who has or had an account by this lease, also when somebody has deleted it; ``None``: there never was one."""
    lease = find_lease(lease_id)
    if lease is not None:
        return LentTo(lease.user, lease.account_id, lease.fence, frozenset(lease.claims))
    last = rows.last_event(f"lease#{lease_id}")
    if last is None:
        return None
    claims = set[str]()
    for event in () if last.action == "lease.ended" else audit.chain_of(last.entity):
        claim = {str(event.data["claim"])} if "claim" in event.data else set()
        claims = claims - claim if event.action == "lease.shortened" else claims | claim
    return LentTo(last.subject, last.data["account"], last.data["fence"], frozenset(claims))


def leases_of(*, user: str) -> tuple[Lease, ...]:
    """What a person has, the newest last; strongly read."""
    person = rows.get_person(user)
    if person is None:
        return ()
    found = find_leases(held.lease for held in person.leases)
    return tuple(found[held.lease] for held in person.leases if held.lease in found)


def list_accounts(*, pool: str = "", state: AccountState | None = None, cursor: str | None = None, limit: int = 50) -> Page[Account]:
    """Accounts of one ``pool`` or all, share by share; in one ``state`` of a pool."""
    if state is not None and pool:
        return _over_shares(lambda share, inner: pages.page_in_state(pool, state, share, cursor=inner, limit=limit), cursor)
    page = _over_shares(lambda share, inner: pages.page_of_accounts(share, pool=pool, cursor=inner, limit=limit), cursor)
    if state is None:
        return page
    return Page(tuple(one for one in page.items if one.state is state), page.next_cursor, page.unreadable)


def list_leases(*, pool: str = "", cursor: str | None = None, limit: int = 50) -> Page[Lease]:
    """Leases of one ``pool`` or all, share by share."""
    return _over_shares(lambda share, inner: pages.page_of_leases(share, pool=pool, cursor=inner, limit=limit), cursor)


def counts_between(*, since: datetime, until: datetime) -> tuple[Count, ...]:
    """The counts of a time, oldest first."""
    return tuple(kept.between(since, until))


def list_pools() -> tuple[str, ...]:
    """The labels of the pools that have accounts; a request for each and share."""
    return tuple(sorted({pool for share in range(SHARDS) for pool in pages.pools_in(share)}))


def find_row(row: Account | Lease) -> Account | Lease | None:
    """The same account or lease as it is now, strongly read."""
    return rows.get_account(row.account_id) if isinstance(row, Account) else find_lease(row.lease_id)


def to_clean(*, now: datetime, past: Callable[[Unreadable], object]) -> Iterator[Account]:
    """What cleaning is to look at now."""
    return pages.to_clean(until=now, beyond=furthest(now, longest=policy.LONGEST_GAP), past=past)


def to_freeze(*, now: datetime, past: Callable[[Unreadable], object]) -> Iterator[Lease]:
    """The leases whose access is to be put off or on now."""
    return pages.to_freeze(until=now, beyond=furthest(now, longest=policy.LONGEST_GAP), past=past)


def history_of_account(*, account_id: str, cursor: str | None = None, limit: int = 50) -> Page[AuditEvent]:
    """All holders and cleanings of an account, newest first; it outlives its row."""
    return audit.history(f"account#{account_id}", cursor=cursor, limit=limit)


def _over_shares(page_of: Callable[[int, str | None], Page[R]], cursor: str | None) -> Page[R]:
    """A page of the share that the cursor names; the last page of one goes on with the next. Empty ones are passed over."""
    number, _, inner = (cursor or "0:").partition(":")
    if not number.isdecimal() or len(number) > 2 or int(number) >= SHARDS:
        raise InvalidRequest("This cursor is not of this list. Begin anew.", code="cursor_forged", field="cursor")
    for share in range(int(number), SHARDS):
        page = page_of(share, inner or None)
        inner = ""
        if page.next_cursor is not None:
            return Page(page.items, f"{share}:{page.next_cursor}", page.unreadable)
        if page.items or page.unreadable:
            return Page(page.items, f"{share + 1}:" if share + 1 < SHARDS else None, page.unreadable)
    return Page(())
