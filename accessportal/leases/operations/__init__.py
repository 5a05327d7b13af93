"""Writes of the pool of accounts; each is told in the audit log."""

from accessportal.leases.config import LeaseSettings, anything_goes, configure
from accessportal.leases.operations.checking import check_pool
from accessportal.leases.operations.cleaning import clean_account, clean_accounts, is_cleaner_set, require_cleaner
from accessportal.leases.operations.counting import count_accounts, keep_counts
from accessportal.leases.operations.freeing import make_available, serve_line
from accessportal.leases.operations.freezing import freeze, note_access_off, note_access_on, put_off, unfreeze
from accessportal.leases.operations.holding import let_go, prolong, revive, start
from accessportal.leases.operations.lines import Asked, asked_at
from accessportal.leases.operations.pool import NewAccount, add_accounts, quarantine, restore, retire
from accessportal.leases.operations.restoring import settle_restore
from accessportal.leases.operations.spending import is_spend_read, note_verdict, read_spend
from accessportal.leases.operations.syncing import has_units, sync_pool
from accessportal.leases.operations.taking import take

__all__ = [
    "Asked",
    "LeaseSettings",
    "NewAccount",
    "add_accounts",
    "anything_goes",
    "asked_at",
    "check_pool",
    "clean_account",
    "clean_accounts",
    "configure",
    "count_accounts",
    "freeze",
    "has_units",
    "is_cleaner_set",
    "is_spend_read",
    "keep_counts",
    "let_go",
    "make_available",
    "note_access_off",
    "note_access_on",
    "note_verdict",
    "prolong",
    "put_off",
    "quarantine",
    "read_spend",
    "require_cleaner",
    "restore",
    "retire",
    "revive",
    "serve_line",
    "settle_restore",
    "start",
    "sync_pool",
    "take",
    "unfreeze",
]
