"""Making the event that goes into the transaction of a change."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from accessportal.audit import policy, store
from accessportal.audit.states import Draft
from accessportal.kernel.actors import Actor
from accessportal.store.transactions import Insert


@dataclass(frozen=True, slots=True)
class Prepared:
    """``step`` goes into the transaction; ``head`` is written as ``audit_head`` on the changed item in the same one."""

    step: Insert
    head: str


def prepare_event(draft: Draft, *, entity: str, sequence: int, prev_hash: str, actor: Actor, now: datetime) -> Prepared:
    """The event of the change that gives ``entity`` its version ``sequence``.

    ``prev_hash`` is the item's ``audit_head`` before the change (empty for a new item). Nothing is written here: the
    insert fails in the caller's transaction when another writer took the sequence, so a chain can't fork.

    :raises ValueError: when the draft's action or data is not registered.
    """
    policy.check_draft(draft)
    step, head = store.insert_event(draft, entity=entity, sequence=sequence, prev_hash=prev_hash, actor=actor.name, now=now)
    return Prepared(step=step, head=head)
