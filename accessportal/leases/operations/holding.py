"""The life of a lease after its account was taken: it starts, is prolonged, ends, and for a moment may be taken back."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import datetime, timedelta
from typing import Any

from accessportal.audit.states import Draft
from accessportal.kernel.actors import Actor
from accessportal.kernel.clock import epoch_of, whole_second
from accessportal.kernel.errors import Conflict
from accessportal.leases import policy, queries
from accessportal.leases.config import current
from accessportal.leases.operations.lines import Asked
from accessportal.leases.operations.shared import SCOPE, changed_lease, told_account, told_lease, until_written, while_wanted
from accessportal.leases.operations.taking import handed_to, lend
from accessportal.leases.states import Account, AccountState, Lease, LeaseState, LentTo, NoSuchLease, Person
from accessportal.leases.store import notes, rows
from accessportal.leases.store.rows import Move
from accessportal.store.transactions import Guard


def start(*, lease_id: str, claim: str, proved_at: datetime, actor: Actor, now: datetime) -> Lease:
    """The access is there: the lease is active, and its time runs from ``proved_at``. Repeated, it changes nothing.

    :raises NoSuchLease: when it has ended, or is not for ``claim``.
    """

    def attempt() -> Lease:
        lease = queries.get_lease(lease_id=lease_id)
        if claim not in lease.claims:
            raise NoSuchLease
        if lease.state is not LeaseState.STARTING:
            return lease
        started_at = whole_second(min(proved_at, now))
        ends_at = started_at + timedelta(seconds=lease.duration_seconds)
        after = replace(lease.in_state(LeaseState.ACTIVE), started_at=started_at, ends_at=ends_at, claims={claim: ends_at})
        return changed_lease(lease, after, "started", actor=actor, now=now, claim=claim, ends_at=epoch_of(ends_at))

    return until_written(attempt)


def prolong(*, lease_id: str, claim: str, ends_at: datetime, guards: Sequence[Guard] = (), actor: Actor, now: datetime) -> Lease:
    """The lease is for ``claim``, too, until ``ends_at``. Repeated, it changes nothing.

    :raises NoSuchLease: when it has ended.
    :raises Conflict: when one of ``guards`` does not hold (``guard_failed``), and before it has started.
    """

    def attempt() -> Lease:
        lease = queries.get_lease(lease_id=lease_id)
        if lease.state is LeaseState.STARTING:
            raise Conflict("This lease has not started yet. Extend it once it has.", code="lease_starting", present=lease)
        if lease.claims.get(claim) == whole_second(ends_at):
            return lease
        after = _with_claims(lease, {**lease.claims, claim: whole_second(ends_at)})
        return changed_lease(lease, after, "prolonged", guards, actor=actor, now=now, claim=claim, ends_at=epoch_of(after.ends_at))

    return while_wanted(attempt)


def let_go(*, lease_id: str, claim: str, actor: Actor, now: datetime) -> LentTo:
    """The lease is for ``claim`` no longer; to be called once the access is proved gone. With the last claim it ends, and its account is to
    be cleaned, or leaves if it is retiring; so it does where somebody has deleted the lease. Repeated, it answers the same.

    :raises NoSuchLease: when there never was one.
    """

    def attempt() -> LentTo:
        found = rows.get_held(lease_id)
        if found is None:
            return _let_go_deleted(lease_id, claim, actor, now)
        lease, account, person = found
        others = {name: until for name, until in lease.claims.items() if name != claim}
        if not others:
            ended = rows.move(lease, None, told_lease("ended", lease, claim=claim), actor=actor, now=now)
            _end(ended, account, lease, person, actor, now)
        elif len(others) < len(lease.claims):
            after = _with_claims(lease, others)
            changed_lease(lease, after, "shortened", actor=actor, now=now, claim=claim, ends_at=epoch_of(after.ends_at))
        return LentTo(lease.user, lease.account_id, lease.fence, frozenset(others))

    return until_written(attempt)


def _let_go_deleted(lease_id: str, claim: str, actor: Actor, now: datetime) -> LentTo:
    """It has ended; or somebody has deleted it, and its account is still lent, to nobody."""
    was = queries.lent_to(lease_id=lease_id)
    if was is None:
        raise NoSuchLease
    left = replace(was, claims=was.claims - {claim})
    if left == was:
        return was
    facts = {"account": was.account_id, "fence": was.fence, "claim": claim}
    draft = Draft(f"lease.{'shortened' if left.claims else 'ended'}", was.user, facts, scope=SCOPE)
    if left.claims:
        notes.tell(f"lease#{lease_id}", draft, actor=actor, now=now)
        return left
    account = rows.get_account(was.account_id)
    is_its = account is not None and account.state is AccountState.LEASED and account.lease_id == lease_id
    ended = rows.move_deleted_lease(lease_id, draft, actor=actor, now=now)
    _end(ended, account if is_its else None, None, rows.get_person(was.user), actor, now)
    return left


def _end(ended: Move[Any], account: Account | None, lease: Lease | None, person: Person | None, actor: Actor, now: datetime) -> None:
    moves = [ended]
    if account is not None:
        moves.append(_given_back(account, lease, actor, now))
    left = None if person is None else without(person, ended.lists.name)
    rows.write(*moves, person=None if person is None or left == person else rows.move_person(person, left))


def _given_back(account: Account, lease: Lease | None, actor: Actor, now: datetime) -> Move[Account]:
    if lease is None or LeaseState.FROZEN in (lease.state, lease.wanted):
        # Taken back it would have its access again: only an operator gives that.
        returned = replace(account.at_rest(AccountState.DIRTY, now=now), due_at=now)
    else:
        due_at = now + timedelta(seconds=current().undo_seconds)
        returned = replace(account.in_state(AccountState.DIRTY, now=now), due_at=due_at, costs_since=policy.costs_since(lease))
    if account.reason:
        returned = account.at_rest(AccountState.FAILED, now=now)
    verb = "retired" if account.is_retiring else "given_back"
    draft = told_account(verb, returned, lease=account.lease_id, user=account.user, reason=account.reason)
    return rows.move(account, None if account.is_retiring else returned, draft, actor=actor, now=now)


def without(person: Person, lease_id: str) -> Person | None:
    """What the person has when this lease is over; ``None``: nothing."""
    left = tuple(held for held in person.leases if held.lease != lease_id)
    return replace(person, data=left[-1], leases=left) if left else None


def revive(asked: Asked, *, account_id: str, ended_lease_id: str, guards: Sequence[Guard] = (), actor: Actor, now: datetime) -> Lease:
    """Let the last holder have the very account again, at the same hand-over, for a new request. Repeated, it answers with the same lease.

    :raises Conflict: when the moment for that is over, or somebody has begun to clean it (``undo_over``); and when one of ``guards`` does
        not hold (``guard_failed``).
    """

    def attempt() -> Lease:
        seen = rows.look_up(asked.lease_id, user=asked.user)
        if seen.lease is not None:
            return seen.lease
        account = queries.get_account(account_id=account_id)
        window = current().undo_seconds
        if not policy.is_revivable(account, lease_id=ended_lease_id, user=asked.user, undo_seconds=window, now=now):
            raise Conflict(
                "This can't be taken back any more: it is being cleaned. Ask for another one.", code="undo_over", present=account
            )
        if asked.is_one_too_many(seen.person):
            raise Conflict("You have as many accounts by now as you may have at once. Give one back.", code="too_many_held")
        after = handed_to(asked, account, fence=account.fence, now=now)
        return lend(account, after, asked, seen.person, "taken_back", further=guards, actor=actor, now=now)

    return while_wanted(attempt)


def _with_claims(lease: Lease, claims: Mapping[str, datetime]) -> Lease:
    ends_at = max(claims.values()) if lease.started_at is not None else None
    return replace(lease, claims=claims, ends_at=ends_at)
