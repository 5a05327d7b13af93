"""Accounts that are lent: mine, and the pool at a glance."""

from __future__ import annotations

from accessportal.leases import queries as leases
from accessportal.leases.states import AccountState
from accessportal.portal.pools import Pool
from accessportal.waiting import queries as waiting
from accessportal.waiting.states import ACCOUNTS

POOL = Pool(
    kind="account_lease",
    route="accounts",
    title="Accounts",
    about="Whole AWS accounts out of a pool, for some days. What is given back is emptied before anybody else gets it.",
    thing="an account",
    states={
        AccountState.AVAILABLE: ("free", "to be had"),
        AccountState.LEASED: ("lent", "in use"),
        AccountState.DIRTY: ("cleaning", "back soon"),
        AccountState.INITIAL: ("new", "cleaned first"),
        AccountState.FAILED: ("failed", "out of use"),
    },
    notice="portal/pools/accounts.html",
    last=leases.last_count,
    between=leases.counts_between,
    told=lambda last, _now: {"in_line": waiting.get_line(ACCOUNTS).waiting if last is not None else 0},
)
