"""What operators do with the accounts of the pool."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from functools import partial

from accessportal.kernel import texts
from accessportal.kernel.actors import Actor
from accessportal.kernel.clock import whole_second
from accessportal.kernel.errors import Conflict
from accessportal.leases import policy, queries
from accessportal.leases.operations.shared import changed_account, told_account, until_written
from accessportal.leases.states import Account, AccountState
from accessportal.leases.store import rows
from accessportal.store.restores import first_fence

_WHY = "Say why, for those who come after you."


@dataclass(frozen=True, slots=True)
class NewAccount:
    """An account that comes into the pool."""

    account_id: str
    name: str = ""
    size: str = ""
    tags: Mapping[str, str] = field(default_factory=dict)


def add_accounts(accounts: Sequence[NewAccount], *, pool: str, actor: Actor, now: datetime) -> tuple[Account, ...]:
    """Bring accounts into the pool, to be cleaned before anybody has one; those that are in it are left as they are.

    :raises InvalidRequest: for an id, a label or a tag that can't be one; nothing is written then.
    :raises ListFull: when the pool holds as many as it can; those before it are in.
    :raises Conflict: for one that is in another pool.
    """
    policy.may_operate(actor).require()
    policy.check_word(pool, field="pool")
    made = [_new(one, pool, now) for one in accounts]
    return tuple(until_written(partial(_add, account, actor, now)) for account in made)


def _new(one: NewAccount, pool: str, now: datetime) -> Account:
    return Account(
        account_id=policy.check_account_id(one.account_id),
        state=AccountState.INITIAL,
        pool=pool,
        added_at=whole_second(now),
        since=now,
        name=policy.check_name(one.name),
        size=policy.check_word(one.size, field="size") if one.size else "",
        tags=policy.check_tags(one.tags),
        due_at=now,
    )


def _add(account: Account, actor: Actor, now: datetime) -> Account:
    present = rows.get_account(account.account_id)
    if present is not None:
        if present.pool != account.pool:
            words = f"{account.account_id} is in the pool {present.pool}. Retire it there first."
            raise Conflict(words, code="in_another_pool", present=present)
        return present
    last = rows.last_event(account.entity)
    # It was here before, or the tables have lost that it was: its hand-overs are counted on.
    fence = max(first_fence(), int(last.data["fence"]) if last else 0)
    if last is not None:
        account = replace(account, version=last.sequence, audit_head=last.hash)
    account = replace(account, fence=fence)
    move = rows.move(None, account, told_account("added", account, pool=account.pool, name=account.name), actor=actor, now=now)
    rows.write(move)
    return move.record


def retire(*, account_id: str, reason: str, actor: Actor, now: datetime) -> Account:
    """Take an account out of the pool: at once, or when it is given back, or when the cleaning that has begun has ended. Repeated, it
    changes nothing."""
    policy.may_operate(actor).require()
    texts.check_reason(reason, missing=_WHY)

    def attempt() -> Account:
        account = queries.get_account(account_id=account_id)
        if account.state is not AccountState.LEASED and not account.is_being_cleaned:
            return changed_account(account, None, "retired", actor=actor, now=now, reason=reason.strip())
        if account.is_retiring:
            return account
        after = replace(account, is_retiring=True)
        return changed_account(account, after, "retiring", actor=actor, now=now, reason=reason.strip())

    return until_written(attempt)


def quarantine(*, account_id: str, reason: str, actor: Actor, now: datetime) -> Account:
    """Put an account out of use; one that is lent, when it is given back. What a cleaning that has begun answers is dropped."""
    policy.may_operate(actor).require()
    texts.check_reason(reason, missing=_WHY)

    def attempt() -> Account:
        account = queries.get_account(account_id=account_id)
        after = account if account.state is AccountState.LEASED else account.at_rest(AccountState.FAILED, now=now)
        return changed_account(account, replace(after, reason=reason.strip()), "quarantined", actor=actor, now=now, reason=reason.strip())

    return until_written(attempt)


def restore(*, account_id: str, actor: Actor, now: datetime) -> Account:
    """Have an account that is out of use cleaned once more, so that it is free after that; of one that is lent or retiring, that it stays.

    :raises Conflict: when there is nothing to restore.
    """
    policy.may_operate(actor).require()

    def attempt() -> Account:
        account = queries.get_account(account_id=account_id)
        if account.state is AccountState.FAILED:
            after = replace(account.at_rest(AccountState.DIRTY, now=now), due_at=now, reason="", is_retiring=False)
        elif account.reason or account.is_retiring:
            after = replace(account, reason="", is_retiring=False)
        else:
            raise Conflict(f"This account is {account.state}: there is nothing to restore.", code="nothing_to_restore", present=account)
        return changed_account(account, after, "restored", actor=actor, now=now)

    return until_written(attempt)
