"""What a restore of the tables leaves to do in the pool: who was lent what in the lost time, no table tells."""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from typing import Any

from accessportal.kernel.actors import Actor
from accessportal.kernel.clock import Clock
from accessportal.kernel.runs import Run
from accessportal.leases import policy, queries
from accessportal.leases.operations.shared import changed_account, told_account, told_lease, until_written
from accessportal.leases.states import Account, AccountState, SettleReport
from accessportal.leases.store import pages, rows
from accessportal.leases.store.rows import Move
from accessportal.store.restores import Restore


def settle_restore(*, restored: Restore, actor: Actor, clock: Clock) -> SettleReport:
    """Raise every fence above all that were given before, and have cleaned first what is free: somebody may have had it in the lost time.
    May be repeated at any time."""
    policy.may_operate(actor).require()
    run, raised = Run(), list[str]()

    def settle(account_id: str) -> None:
        if until_written(partial(_raised, account_id, restored.epoch, actor, clock)):
            raised.append(account_id)

    for row in pages.every_row(past=run.pass_over):
        if isinstance(row, Account):
            run.unit(row.account_id, partial(settle, row.account_id))
    return SettleReport(raised=tuple(raised), failures=run.failed)


def _raised(account_id: str, epoch: int, actor: Actor, clock: Clock) -> bool:
    account, now = queries.get_account(account_id=account_id), clock.now()
    if account.fence >= epoch:
        return False
    after = replace(account, fence=epoch)
    if account.state is not AccountState.LEASED:
        if account.state is AccountState.AVAILABLE:
            after = replace(after.at_rest(AccountState.DIRTY, now=now), due_at=now)
        changed_account(account, after, "fence_raised", actor=actor, now=now)
        return True
    moves: list[Move[Any]] = [rows.move(account, after, told_account("fence_raised", after, lease=account.lease_id), actor=actor, now=now)]
    lease = rows.find_lease(account.lease_id)
    if lease is not None:
        later = replace(lease, fence=epoch)
        moves.append(rows.move(lease, later, told_lease("fence_raised", later), actor=actor, now=now))
    rows.write(*moves)
    return True
