"""Counting the accounts, for pages and forecasts; nothing is decided by it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable

from accessportal.kernel.clock import Clock
from accessportal.kernel.pages import Unreadable
from accessportal.leases.states import AccountState, Count
from accessportal.leases.store import counts, pages


def count_accounts(*, clock: Clock) -> Count:
    """Count all accounts and leases by our indexes, keep the count, and return it."""
    now, before = clock.now(), counts.last_count()
    unreadable: list[Unreadable] = []
    accounts = list(pages.every_account(past=unreadable.append))
    ends = [lease.expected_end for lease in pages.every_lease(past=unreadable.append)]
    counted = Counter((account.pool, account.state) for account in accounts)
    pools = sorted({account.pool for account in accounts})
    since = before.counted_at if before is not None else now
    count = Count(
        counted_at=now,
        counts={state: sum(counted[pool, state] for pool in pools) for state in AccountState},
        handed_out=sum(account.state is AccountState.LEASED and since < account.since <= now for account in accounts),
        pools={pool: {state: counted[pool, state] for state in AccountState} for pool in pools},
        ends=tuple(sorted([*ends, *(account.since for account in accounts if account.state.is_cleaned_next)])),
        unreadable=len(unreadable),
    )
    counts.keep(count)
    return count


def keep_counts(found: Iterable[Count]) -> None:
    """Keep counts of the past, oldest first."""
    for count in found:
        counts.keep(count)
