"""What is written beside the rows' own changes: when something is looked at again, and events about accounts that are in no pool."""

from __future__ import annotations

from datetime import datetime
from typing import TypeVar

from accessportal.audit.states import Draft
from accessportal.kernel.actors import Actor
from accessportal.leases.states import Account, Lease
from accessportal.leases.store import rows
from accessportal.store.transactions import ConditionFailed, Overtaken, transact, update_one

R = TypeVar("R", Account, Lease)


def note(before: R, after: R) -> None:
    """Write what no event tells, such as when it is looked at again.

    :raises Overtaken: when somebody else changed it first.
    """
    try:
        update_one(rows.records_of(before).change(before, after))
    except ConditionFailed as error:
        raise Overtaken from error


def tell(entity: str, draft: Draft, *, actor: Actor, now: datetime) -> None:
    """Write an event to the end of a chain that has no row.

    :raises Overtaken: when somebody else was first.
    """
    step = rows.after_last_event(entity, draft, actor=actor, now=now)
    try:
        transact([step])
    except ConditionFailed as error:
        raise Overtaken from error
