"""What every change of the directory shares: deciding anew after a lost race, its events, and who is told of it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import datetime
from typing import TypeVar

from accessportal.audit.operations import told
from accessportal.audit.states import Draft
from accessportal.directory.following import follow
from accessportal.directory.states import Changed, Claim, Group, Membership, Person
from accessportal.kernel.actors import Actor
from accessportal.kernel.clock import to_epoch
from accessportal.kernel.errors import Conflict
from accessportal.kernel.ports import after_commit
from accessportal.store.erasures import ErasureItem
from accessportal.store.transactions import ConditionFailed, Guard, Insert, Overtaken, step_model, until_written

R = TypeVar("R", Person, Group, Person | None)
T = TypeVar("T")


def settled(attempt: Callable[[], T], *, guards: Sequence[Guard] = ()) -> T:
    """Run ``attempt``, which reads, decides and writes, anew while other writers come between. :raises Conflict: when one of ``guards``
    does not hold, or they never cease."""

    def once() -> T:
        try:
            return attempt()
        except ConditionFailed as failed:
            if any(failed.step is guard for guard in guards):
                raise Conflict("The request changed while the membership was being changed.", code="guard_failed") from failed
            if step_model(failed.step) is ErasureItem:
                words = "The person with this address is being erased. Wait until that is done, then try again."
                raise Conflict(words, code="being_erased") from failed
            raise Overtaken from failed

    contended = Conflict("Others keep changing the same person or group right now. Try again.", code="directory_contended")
    return until_written(once, contended=contended)


def mirrored(record: R, *, entity: str, now: datetime) -> Changed[R]:
    """The written change, and whether Cognito follows it at once."""
    return Changed(record, follow(entity=entity, now=now))


def ask_to_look() -> None:
    """Have what hangs on the directory looked at soon, after a change by which somebody may lose something."""
    after_commit("end_departed")


def told_person(person: Person, drafts: Sequence[Draft], *, actor: Actor, now: datetime) -> tuple[Person, list[Insert]]:
    """``person`` at the version after these events, and the steps that write them."""
    events = []
    for draft in drafts:
        person, event = told(person, draft, actor=actor, now=now)
        events.append(event)
    return person, events


def about_membership(action: str, claim: Claim, after: Membership | None, *, of: Membership, now: datetime, **more: str) -> Draft:
    """The event of ``claim`` coming to or leaving the membership ``of``, which is ``after`` from now on."""
    effective = after.role_at(now) if after else None
    data: dict[str, str | int] = {
        "email": of.person,
        "group_id": of.group_id,
        "role": claim.role.value,
        "claim": claim.claim_id,
        "effective_role": effective.value if effective else "",
        **more,
    }
    if claim.ends_at is not None:
        data["ends_at"] = to_epoch(claim.ends_at)
    return Draft(action, of.person, data, scope=of.group_id)
