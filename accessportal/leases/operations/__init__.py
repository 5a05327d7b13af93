"""Writes of the pool of accounts; each is told in the audit log."""

from __future__ import annotations

from accessportal.leases.config import LeaseSettings, configure
from accessportal.leases.operations.checking import check_pool
from accessportal.leases.operations.counting import count_accounts
from accessportal.leases.operations.freeing import make_available, serve_line
from accessportal.leases.operations.freezing import freeze, note_access_off, note_access_on, put_off, unfreeze
from accessportal.leases.operations.holding import let_go, prolong, revive, start
from accessportal.leases.operations.pool import NewAccount, add_accounts, quarantine, restore, retire
from accessportal.leases.operations.restoring import settle_restore
from accessportal.leases.operations.taking import take

__all__ = [
    "LeaseSettings",
    "NewAccount",
    "add_accounts",
    "check_pool",
    "configure",
    "count_accounts",
    "freeze",
    "let_go",
    "make_available",
    "note_access_off",
    "note_access_on",
    "prolong",
    "put_off",
    "quarantine",
    "restore",
    "retire",
    "revive",
    "serve_line",
    "settle_restore",
    "start",
    "take",
    "unfreeze",
]
