"""Taking an account: for whoever comes by while nobody waits, and for whoever is first in the line."""

from __future__ import annotations

import random
from collections.abc import Iterator, Sequence
from dataclasses import replace
from datetime import datetime, timedelta
from functools import partial

from accessportal.kernel.actors import Actor
from accessportal.kernel.brakes import most_at_once
from accessportal.kernel.clock import Clock, whole_second
from accessportal.kernel.errors import Conflict
from accessportal.kernel.pages import Page, every
from accessportal.kernel.ports import after_commit
from accessportal.kernel.proofs import Waiting
from accessportal.leases.config import current
from accessportal.leases.operations import lines
from accessportal.leases.operations.lines import Asked
from accessportal.leases.operations.shared import changed_account, new_certificate, told_account, told_lease, while_wanted
from accessportal.leases.states import (
    SHARDS,
    Account,
    AccountState,
    Held,
    Lease,
    LeaseData,
    LeaseState,
    ListFull,
    Person,
    TooManySetAside,
)
from accessportal.leases.store import counts, pages, rows
from accessportal.store.restores import held_back
from accessportal.store.transactions import ConditionFailed, Guard, Overtaken, Step
from accessportal.waiting.queries import item_of_place, nobody_waits
from accessportal.waiting.states import ACCOUNTS

_FEW = 20
_PAGE = 100
_LOOK_AGAIN = timedelta(minutes=1)
_LATER = timedelta(minutes=5)
# By other threads of this process: they are tried last.
_being_taken: set[str] = set()


def take(asked: Asked, *, lapses_at: datetime, guards: Sequence[Guard] = (), actor: Actor, clock: Clock) -> Lease | Waiting:
    """Take a free account that fits for a request, or give it a place in the line, which lapses at ``lapses_at``. Repeated, it answers with
    the same lease.

    :raises Conflict: when one of ``guards`` does not hold (``guard_failed``): nothing was written.
    """
    return while_wanted(lambda: _take(asked, lapses_at, guards, actor, clock.now()))


def _take(asked: Asked, lapses_at: datetime, guards: Sequence[Guard], actor: Actor, now: datetime) -> Lease | Waiting:
    seen = rows.look_up(asked.lease_id, user=asked.user, place=item_of_place(line=ACCOUNTS, claim=asked.claim))
    if seen.lease is not None:
        if asked.claim not in seen.lease.claims:
            raise Conflict("This lease is another request's.", code="lease_of_another", present=seen.lease)
        return seen.lease
    if seen.is_held:
        return held_back(now)
    if asked.is_one_too_many(seen.person):
        return _too_many(asked, now)
    if seen.waits:
        # What is free is its own only when its turn comes.
        return _in_line(now)
    free, is_one_free = nobody_waits(ACCOUNTS), False
    for account in free_that_meet(asked):
        _being_taken.add(account.account_id)
        try:
            if flaw := why_not(account):
                set_aside(account, account, flaw, actor=actor, now=now)
                continue
            after = handed_to(asked, account, fence=account.fence + 1, now=now)
            return lend(account, after, asked, seen.person, "leased", further=[*guards, free], actor=actor, now=now)
        except rows.FirstOvertaken:
            continue
        except Overtaken:
            if rows.find_lease(asked.lease_id) is not None or rows.last_event(f"lease#{asked.lease_id}") is None:
                raise
            words = "The account was given back, or taken away, before this was done. End this request; another can be asked for."
            return Waiting("lease_over", words, now + _LATER, is_error=True)
        except ConditionFailed as error:
            if error.step is not free:
                raise
            is_one_free = True
            break
        except TooManySetAside:
            # Likelier the look is wrong, and would be so of each that is free: whoever serves the line looks on.
            is_one_free = True
            break
        except ListFull:
            break
        finally:
            _being_taken.discard(account.account_id)
    lines.join(asked, lapses_at=lapses_at, guards=guards, actor=actor, now=now)
    if is_one_free:
        # Those before may wait for others than these.
        after_commit("serve_line")
    return _in_line(now)


def _in_line(now: datetime) -> Waiting:
    words = "No account that fits is free at the moment. It gets one as soon as its turn comes."
    return Waiting("no_account_free", words, now + _LOOK_AGAIN, is_error=False, is_queued=True)


def _too_many(asked: Asked, now: datetime) -> Waiting:
    most = "one account" if asked.most_held == 1 else f"{asked.most_held} accounts"
    words = f"{asked.user} has {most}, as many as one person may have at once. Give one back."
    return Waiting("too_many_held", words, now + _LATER, is_error=True)


def free_that_meet(asked: Asked) -> Iterator[Account]:
    """Free accounts that are what is asked for, by the index: a few near a random place, where many takers seldom meet, then all."""
    for share in random.sample(range(SHARDS), SHARDS):
        place = f"{random.randrange(10**12):012d}"
        fetch = partial(pages.page_in_state, asked.pool, AccountState.AVAILABLE, share, cursor=None, limit=_FEW)
        some = fetch(after=place).items or fetch().items
        near = [account for account in some if asked.is_met_by(account)]
        yield from (account for account in random.sample(near, len(near)) if account.account_id not in _being_taken)
    yield from (account for account in free_in(asked.pool) if asked.is_met_by(account))


def free_in(pool: str) -> Iterator[Account]:
    """All that the index shows as free. What can't be read is nobody's; ``check_pool`` names it."""
    for share in random.sample(range(SHARDS), SHARDS):
        yield from every(partial(_free_page, pool, share), past=lambda _one: None)


def _free_page(pool: str, share: int, cursor: str | None) -> Page[Account]:
    return pages.page_in_state(pool, AccountState.AVAILABLE, share, cursor=cursor, limit=_PAGE)


def why_not(account: Account) -> str:
    """Why the account may not go out, by a look at it; empty when it may."""
    return current().flaw_of(account.account_id)


def set_aside(before: Account, account: Account, flaw: str, *, actor: Actor, now: datetime) -> None:
    """Put an account that may not go out, as it was read ``before`` and is now, out of use.

    :raises Overtaken: when it has changed meanwhile.
    :raises TooManySetAside: when many of its pool are; it stays as it is.
    """
    counted = counts.last_count()
    known = sum(counted.pools.get(account.pool, {}).values()) if counted is not None else 0
    failed = sum(pages.count_in_state(account.pool, AccountState.FAILED, share) for share in range(SHARDS))
    if failed >= most_at_once(known):
        raise TooManySetAside(account.pool, flaw)
    after = replace(account.at_rest(AccountState.FAILED, now=now), reason=flaw)
    changed_account(before, after, "set_aside", actor=actor, now=now, reason=flaw, certificate=new_certificate(before, after))


def handed_to(asked: Asked, account: Account, *, fence: int, now: datetime) -> Account:
    """The account as it is theirs, at the hand-over ``fence``."""
    # Taken back, it goes on costing what it cost: or giving back would end a budget.
    costs_since = account.costs_since if fence == account.fence else None
    lent = account.in_state(AccountState.LEASED, now=now)
    return replace(lent, fence=fence, lease_id=asked.lease_id, user=asked.user, costs_since=costs_since)


def lend(
    before: Account,
    after: Account,
    asked: Asked,
    person: Person | None,
    verb: str,
    *,
    further: Sequence[Step],
    actor: Actor,
    now: datetime,
) -> Lease:
    """Write the hand-over of an account, as it was read ``before``.

    :raises Overtaken: when it, the lease or what the person has changed meanwhile.
    :raises ConditionFailed: when one of ``further`` does not hold.
    """
    lease = Lease(
        lease_id=asked.lease_id,
        data=LeaseData(LeaseState.STARTING, after.account_id, asked.user),
        pool=after.pool,
        permission_set=asked.permission_set,
        fence=after.fence,
        duration_seconds=asked.duration_seconds,
        taken_at=now,
        claims={asked.claim: whole_second(now) + timedelta(seconds=asked.duration_seconds)},
        costs_since=after.costs_since,
    )
    held = Held(asked.lease_id, after.account_id)
    has = Person(asked.user, held, (held,)) if person is None else replace(person, data=held, leases=(*person.leases, held))
    told = told_account(verb, after, lease=lease.lease_id, user=lease.user, certificate=new_certificate(before, after))
    taken = rows.move(None, lease, told_lease("taken", lease, claim=asked.claim), actor=actor, now=now)
    moved = rows.move(before, after, told, actor=actor, now=now)
    rows.write(moved, taken, person=rows.move_person(person, has), further=further)
    return taken.record
