"""Taking somebody out of every table: the record of it, and the walk. Killed anywhere, the next walk goes on."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime

from accessportal.audit import config, policy
from accessportal.audit.erasing_store import Walked, walk
from accessportal.audit.operations.writing import change, insert
from accessportal.audit.states import Draft
from accessportal.kernel.actors import Actor
from accessportal.kernel.errors import Conflict
from accessportal.kernel.pseudonyms import Pseudonyms
from accessportal.store.erasures import ERASURES, Erasure, find_erasure
from accessportal.store.transactions import Step, until_written

_CONTENDED = Conflict("Somebody else erases the same person at this moment. Try again.", code="erasure_contended")


def pseudonyms() -> Pseudonyms:
    """:raises Conflict: where the installation has none."""
    found = config.current().pseudonyms
    if found is None:
        words = "Nobody can be erased without PORTAL_PSEUDONYM_KEY. Set it in every process (docs/operations.md)."
        raise Conflict(words, code="pseudonyms_off")
    return found


def require_erasing_right(actor: Actor) -> None:
    """:raises NotAllowed: unless ``actor`` may erase people."""
    policy.may_erase(actor).require()


def begin_erasure(*, pseudonym: str, further: Sequence[Step], actor: Actor, now: datetime) -> Erasure:
    """Write down that the person is being erased, with the ``further`` steps; one that is under way is gone on with.

    :raises NotAllowed: unless the actor is an operator without an end.
    :raises ConditionFailed: when one of ``further`` does not hold.
    """
    require_erasing_right(actor)

    def attempt() -> Erasure:
        before = find_erasure(pseudonym)
        if before is not None and before.is_under_way:
            return before
        draft = Draft("person.erasure_begun", pseudonym, {})
        after = Erasure(pseudonym, begun_by=actor.name, begun_at=now)
        if before is None:
            return insert(ERASURES, after, draft=draft, actor=actor, now=now, further=further)
        after = replace(after, version=before.version, audit_head=before.audit_head)
        return change(ERASURES, before, after, draft=draft, actor=actor, now=now, further=further)

    return until_written(attempt, contended=_CONTENDED)


def end_erasure(erasure: Erasure, *, actor: Actor, now: datetime) -> Erasure:
    """Write down that nothing names the person any more; once, whoever comes first."""

    def attempt() -> Erasure:
        before = find_erasure(erasure.pseudonym) or erasure
        if not before.is_under_way:
            return before
        draft = Draft("person.erased", erasure.pseudonym, {})
        return change(ERASURES, before, replace(before, ended_at=now), draft=draft, actor=actor, now=now)

    return until_written(attempt, contended=_CONTENDED)


def take_out(pseudonym: str, *, names: frozenset[str] = frozenset(), is_dry: bool) -> Walked:
    """Walk every table once, and replace the person's address by the pseudonym wherever it stands; in their own chain their names, too.

    :raises Conflict: for an event of before pseudonyms that is not whole: nothing can vouch for it.
    """
    pseudonyms()
    return walk(pseudonym, names=names, is_dry=is_dry)
