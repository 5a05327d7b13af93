"""Audited writes: a change of one record, its next version and its event, all or nothing."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from datetime import datetime
from typing import Any, ClassVar, Protocol, TypeVar

from accessportal.audit import policy, store
from accessportal.audit.states import Chained, Draft
from accessportal.kernel.actors import Actor
from accessportal.store.records import Records
from accessportal.store.transactions import ConditionFailed, Insert, Overtaken, Step, transact


class Audited(Chained, Protocol):
    """A record that is written with its events."""

    __dataclass_fields__: ClassVar[dict[str, dataclasses.Field[Any]]]


R = TypeVar("R", bound=Audited)


@dataclasses.dataclass(frozen=True, slots=True)
class Prepared:
    """``step`` goes into the transaction; ``head`` is written as ``audit_head`` on the changed item in the same one."""

    step: Insert
    head: str


def insert(
    records: Records[Any, R], record: R, *, draft: Draft, actor: Actor, now: datetime, further: Sequence[Step] = (), **unread: Any
) -> R:
    """Write a new item, with its event and the ``further`` steps; ``unread`` are attributes that are in no record.

    :raises Overtaken: when there is one with its key.
    :raises ConditionFailed: when one of ``further`` does not hold.
    """
    made, event = told(record, draft, actor=actor, now=now)
    _write([records.insertion(made, **unread), event], further)
    return records.kept(made)


def change(records: Records[Any, R], before: R, after: R, *, draft: Draft, actor: Actor, now: datetime, further: Sequence[Step] = ()) -> R:
    """Write what differs between ``before``, as it was read, and ``after``, with the event and the ``further`` steps.

    :raises Overtaken: when somebody else changed it first.
    :raises ConditionFailed: when one of ``further`` does not hold.
    """
    changed, event = told(after, draft, actor=actor, now=now)
    _write([records.change(before, changed), event], further)
    return records.kept(changed)


def remove(records: Records[Any, R], record: R, *, draft: Draft, actor: Actor, now: datetime, further: Sequence[Step] = ()) -> None:
    """Delete the item, with the event that ends its chain and the ``further`` steps.

    :raises Overtaken: when somebody else changed it first.
    :raises ConditionFailed: when one of ``further`` does not hold.
    """
    _, event = told(record, draft, actor=actor, now=now)
    _write([records.removal(record), event], further)


def told(record: R, draft: Draft, *, actor: Actor, now: datetime) -> tuple[R, Insert]:
    """The record at its next version, and the step that writes why."""
    version = record.version + 1
    event = prepare_event(draft, entity=record.entity, sequence=version, prev_hash=record.audit_head, actor=actor, now=now)
    return dataclasses.replace(record, version=version, audit_head=event.head), event.step


def prepare_event(draft: Draft, *, entity: str, sequence: int, prev_hash: str, actor: Actor, now: datetime) -> Prepared:
    """The event of the change that gives ``entity`` its version ``sequence``.

    ``prev_hash`` is the item's ``audit_head`` before the change (empty for a new item). Nothing is written here: the
    insert fails in the caller's transaction when another writer took the sequence, so a chain can't fork.

    :raises ValueError: when the draft's action or data is not registered.
    """
    policy.check_draft(draft)
    step, head = store.insert_event(draft, entity=entity, sequence=sequence, prev_hash=prev_hash, actor=actor.name, now=now)
    return Prepared(step=step, head=head)


def _write(steps: list[Step], further: Sequence[Step]) -> None:
    try:
        transact([*steps, *further])
    except ConditionFailed as error:
        if any(error.step is one for one in steps):
            raise Overtaken from error
        raise
