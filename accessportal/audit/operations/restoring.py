"""Writing down that the tables were restored: from that moment on grants are held, and everything counts from a new epoch."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from datetime import datetime

from accessportal.audit import policy
from accessportal.audit.operations.writing import change, insert
from accessportal.audit.states import Draft
from accessportal.kernel.actors import Actor
from accessportal.kernel.clock import to_epoch, whole_second
from accessportal.kernel.errors import Conflict, InvalidRequest
from accessportal.store.restores import RESTORES, Restore, free_grants, hold_grants, hold_grants_again, last_restore
from accessportal.store.transactions import ConditionFailed, Overtaken


def begin_restore(*, restored_to: datetime, actor: Actor, now: datetime) -> Restore:
    """Grants are held from now on, and fences and published sequences go on above all that were given before. The one that is under
    way for the same moment is gone on with.

    :raises NotAllowed: unless the actor is an operator.
    :raises InvalidRequest: when the moment lies ahead.
    :raises Conflict: when the restore to this moment was confirmed before, or somebody else begins one now.
    """
    policy.may_restore(actor).require()
    if restored_to >= now:
        raise InvalidRequest("Give the moment in the past that the tables were restored to.", code="moment_ahead", field="--restored-to")
    last = last_restore()
    if last is not None and last.restored_to == whole_second(restored_to):
        if last.is_held:
            hold_grants_again(last)
            return last
        raise Conflict(
            f"The restore to {last.restored_to:%Y-%m-%d %H:%M:%SZ} was confirmed by {last.confirmed_by} before. Nothing was done.",
            code="restore_confirmed",
            present=last,
        )
    epoch = to_epoch(now) if last is None else max(to_epoch(now), last.epoch + 1)
    restore = Restore(epoch=epoch, restored_to=restored_to, begun_by=actor.name)
    draft = Draft("restore.begun", "tables", {"restored_to": to_epoch(restored_to), "epoch": epoch})
    with _alone():
        return insert(RESTORES, restore, draft=draft, actor=actor, now=now, further=[hold_grants(restore)])


def require_restore_right(actor: Actor) -> None:
    """:raises NotAllowed: unless ``actor`` may tell and confirm a restore."""
    policy.may_restore(actor).require()


def note_step(restore: Restore, *, step: str, counts: Mapping[str, int], actor: Actor, now: datetime) -> Restore:
    """The step is done, and not done again.

    :raises Conflict: when somebody else writes to the same restore now.
    """
    after = dataclasses.replace(restore, done=restore.done | {step})
    with _alone():
        return change(RESTORES, restore, after, draft=Draft("restore.step_done", "tables", {"step": step, **counts}), actor=actor, now=now)


def confirm_restore(restore: Restore, *, counts: Mapping[str, int], actor: Actor, now: datetime) -> Restore:
    """Grants go on.

    :raises NotAllowed: unless the actor is an operator.
    :raises Conflict: when somebody else writes to the same restore now.
    """
    policy.may_restore(actor).require()
    after = dataclasses.replace(restore, confirmed_by=actor.name, confirmed_at=now)
    draft = Draft("restore.confirmed", "tables", dict(counts))
    with _alone():
        return change(RESTORES, restore, after, draft=draft, actor=actor, now=now, further=[free_grants(restore)])


@contextmanager
def _alone() -> Iterator[None]:
    try:
        yield
    except (ConditionFailed, Overtaken) as error:
        text = "Somebody else runs after_restore at this moment. Wait for it, then run it again: it goes on where that stopped."
        raise Conflict(text, code="restore_contended") from error
