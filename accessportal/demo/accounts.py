"""The demo's accounts that are lent: eight of them, who has or waits for one, and a week of counts that nobody took."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from datetime import datetime, timedelta

from accessportal.demo.requests import ask
from accessportal.kernel.actors import system
from accessportal.kernel.clock import to_epoch
from accessportal.leases import operations, queries
from accessportal.leases.operations import NewAccount
from accessportal.leases.states import AccountState, Count

POOL = "labs"
SIZES = {
    "lab-amber": "small",
    "lab-birch": "small",
    "lab-cedar": "small",
    "lab-dune": "small",
    "lab-elm": "small",
    "lab-fern": "large",
    "lab-grove": "large",
    "lab-hazel": "large",
}
# Never cleaned yet: the worker begins with them.
_NEW = frozenset({"lab-elm", "lab-hazel"})
_BROKEN = "lab-grove"
_WHY_BROKEN = "A bucket is locked until March and can't be emptied. The storage team knows."
_DEMO = system("demo")
_DAY = 86_400
# The last day as closely as its drawing needs it, and the days before it.
_STEPS = ((timedelta(hours=3), 8 * 6), (timedelta(minutes=30), 48))


def fill_account_pool(ids: Mapping[str, str], *, now: datetime) -> None:
    """Put the accounts, by name, into the pool: most are clean, two are new, and one is out of use."""
    new = [NewAccount(account_id, name=name, size=SIZES[name], tags={"env": "lab"}) for name, account_id in ids.items()]
    for account in operations.add_accounts(new, pool=POOL, actor=_DEMO, now=now):
        if account.name not in _NEW:
            cleaned = {"account_id": account.account_id, "found": 12, "removed": 12, "left": [], "not_looked_at": ["AWS::Support::Case"]}
            told = {"run": "demo", "started_at": to_epoch(now), "ended_at": to_epoch(now), **cleaned}
            operations.make_available(queries.get_account(account_id=account.account_id), certificate=told, actor=_DEMO, now=now)
    operations.quarantine(account_id=ids[_BROKEN], reason=_WHY_BROKEN, actor=_DEMO, now=now)


def ask_for_accounts(*, now: datetime) -> None:
    """Alice and Nina have a small one as soon as the worker comes by; of three who want a large one some wait. To be called once the demo's
    rules are in force."""
    for who, size, days, reason in (
        ("alice", "small", 2, "Try the new landing zone"),
        ("nina", "small", 3, "Load test of the ledger"),
        ("femi", "large", 5, "Rebuild the network hub beside the old one"),
        ("tom", "large", 3, "Train the new search model"),
        ("priya", "large", 2, "Copy of the warehouse for the audit"),
    ):
        target = {"pool": POOL, "size": size, "tags": "", "permission_set": "PowerUserAccess"}
        ask(who, "account_lease", target, seconds=days * _DAY, reason=reason, name="account", now=now)


def make_account_counts(*, now: datetime) -> None:
    """The pages have something to draw, and to foretell from, from the start."""
    operations.keep_counts(past_counts(now))


def past_counts(now: datetime) -> Iterator[Count]:
    """A week up to ``now``, oldest first: some go out each working day, and come back after some days."""
    # The last one is of a moment ago: the first that the worker takes comes after it.
    at, lent_before = now + _STEPS[-1][0] - timedelta(minutes=5) - sum((step * times for step, times in _STEPS), timedelta()), 2
    for step, times in _STEPS:
        for _ in range(times):
            lent = 2 + round(2 + 2 * math.sin(at.timestamp() / (1.7 * _DAY))) if at.weekday() < 5 else 2
            cleaning = int(lent < lent_before)
            counts = {AccountState.LEASED: lent, AccountState.DIRTY: cleaning, AccountState.FAILED: 1}
            free = len(SIZES) - sum(counts.values())
            yield Count(at, {**counts, AccountState.INITIAL: 0, AccountState.AVAILABLE: free}, max(lent - lent_before, 0))
            at, lent_before = at + step, lent
