"""Writes of the pool: one function per verb. Each loads, re-checks, decides, writes once, and returns the new record."""

from accessportal.sandboxes.config import SandboxSettings, configure
from accessportal.sandboxes.operations.cleaning import clean
from accessportal.sandboxes.operations.handing import serve_line
from accessportal.sandboxes.operations.holding import hold, let_go, revive
from accessportal.sandboxes.operations.releasing import expire, release, release_by_operator
from accessportal.sandboxes.operations.restoring import clean_restored, settle_restore
from accessportal.sandboxes.operations.runs import forget_old, order_run, perform_due_runs, perform_run
from accessportal.sandboxes.operations.syncing import count, sync
from accessportal.sandboxes.operations.taking import take
from accessportal.sandboxes.operations.tending import add, mend, quarantine, restore

__all__ = [
    "SandboxSettings",
    "add",
    "clean",
    "clean_restored",
    "configure",
    "count",
    "expire",
    "forget_old",
    "hold",
    "let_go",
    "mend",
    "order_run",
    "perform_due_runs",
    "perform_run",
    "quarantine",
    "release",
    "release_by_operator",
    "restore",
    "revive",
    "serve_line",
    "settle_restore",
    "sync",
    "take",
]
