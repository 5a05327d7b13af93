"""What the operations share: the events, and trying again after a lost race."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import datetime
from typing import Any, TypeVar

from accessportal.audit.states import Draft
from accessportal.kernel.actors import Actor
from accessportal.kernel.errors import Conflict, NoAnswer
from accessportal.leases.states import Account, Lease
from accessportal.leases.store import rows
from accessportal.store import transactions
from accessportal.store.transactions import Guard, Step

T = TypeVar("T")
SCOPE = "leases"


def until_written(attempt: Callable[[], T]) -> T:
    """The result of ``attempt``, which reads, decides and writes; again from the start whenever it was overtaken."""
    words = "Too many others are changing this account right now. Try again."
    return transactions.until_written(attempt, contended=NoAnswer(words, code="account_contended"))


def while_wanted(attempt: Callable[[], T]) -> T:
    """As :func:`until_written`, where guards of the request are among what is written.

    :raises Conflict: when one of them does not hold (``guard_failed``): nothing was written.
    """
    try:
        return until_written(attempt)
    except transactions.ConditionFailed as error:
        raise Conflict("It is no longer wanted: the request changed meanwhile.", code="guard_failed") from error


def told_account(verb: str, account: Account, **data: Any) -> Draft:
    """The event of a change that leaves ``account``; always with its fence and state."""
    facts = {"fence": account.fence, "state": account.state.value, **_given(data)}
    return Draft(f"account.{verb}", account.account_id, facts, scope=SCOPE)


def told_lease(verb: str, lease: Lease, **data: Any) -> Draft:
    """The event of a change that leaves ``lease``; always with its account and hand-over."""
    facts = {"account": lease.account_id, "fence": lease.fence, "state": lease.state.value, **_given(data)}
    return Draft(f"lease.{verb}", lease.user, facts, scope=SCOPE)


def changed_lease(
    before: Lease, after: Lease, verb: str, guards: Sequence[Guard] = (), *, actor: Actor, now: datetime, **data: Any
) -> Lease:
    """Write the lease by itself.

    :raises Overtaken: when somebody else changed it first.
    :raises ConditionFailed: when one of ``guards`` does not hold.
    """
    move = rows.move(before, after, told_lease(verb, after, **data), actor=actor, now=now)
    rows.write(move, further=guards)
    return move.record


def changed_account(
    before: Account, after: Account | None, verb: str, further: Sequence[Step] = (), *, actor: Actor, now: datetime, **data: Any
) -> Account:
    """Write the account by itself (``None``: it leaves the pool).

    :raises Overtaken: when somebody else changed it first, or one of ``further`` does not hold.
    """
    move = rows.move(before, after, told_account(verb, after or before, **data), actor=actor, now=now)
    try:
        rows.write(move, further=further)
    except transactions.ConditionFailed as error:
        raise transactions.Overtaken from error
    return move.record


def new_certificate(before: Account, after: Account) -> dict[str, Any] | None:
    """Of the cleaning that an event tells of beside its own change, if any."""
    return dict(after.certificate) if after.cleaned_at != before.cleaned_at else None


def _given(data: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in data.items() if value not in (None, "")}
