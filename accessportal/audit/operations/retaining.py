"""How long events stay: what may go is told first, in a chain of its own, and then whole chains go, each at once.

Which chains may go, and that they lie outside, is judged by whoever calls (``evidence.retention``).
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime

from accessportal.audit import policy, store
from accessportal.audit.operations.writing import prepare_event
from accessportal.audit.states import RETENTION, AuditEvent, Draft
from accessportal.kernel.actors import Actor
from accessportal.kernel.clock import to_epoch
from accessportal.kernel.errors import Conflict
from accessportal.store.transactions import ConditionFailed, Overtaken, transact, until_written

_CONTENDED = Conflict("Somebody else orders the same at this moment. Try again.", code="removal_contended")


def require_removing_right(actor: Actor) -> None:
    """:raises NotAllowed: unless ``actor`` may have old events removed."""
    policy.may_remove(actor).require()


def order_removal(*, before: datetime, keep_days: int, actor: Actor, now: datetime) -> None:
    """Tell that what was over ``before`` goes from now on; once, whoever comes first, and not after an order that reaches further."""
    require_removing_right(actor)

    def attempt() -> None:
        newest = next(iter(store.history(RETENTION, limit=1).items), None)
        if newest is not None and newest.data.get("before_at", 0) >= to_epoch(before):
            return
        sequence, head = (newest.sequence, newest.hash) if newest else (0, "")
        draft = Draft("audit_log.removal_ordered", "audit log", {"before_at": to_epoch(before), "keep_days": keep_days})
        event = prepare_event(draft, entity=RETENTION, sequence=sequence + 1, prev_hash=head, actor=actor, now=now)
        try:
            transact([event.step])
        except ConditionFailed as error:
            raise Overtaken from error

    until_written(attempt, contended=_CONTENDED)


def remove_chain(events: Sequence[AuditEvent]) -> bool:
    """Delete all events of a chain, all or nothing, as they were read; false when somebody else was first, or changed one."""
    return store.delete_events(events)
