"""What the operations have in common: deciding anew after a lost race, telling the chains, finding or refusing."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import datetime
from typing import TypeVar

from accessportal.audit import queries as audit_queries
from accessportal.audit.operations import told
from accessportal.audit.states import Draft
from accessportal.directory.following import follow
from accessportal.directory.policy.rights import may_give, may_take, may_with_group, may_with_people
from accessportal.directory.policy.words import is_group_id
from accessportal.directory.queries.book import Book
from accessportal.directory.queries.rights import actor_right_on
from accessportal.directory.states import (
    PERMANENT,
    ROOT,
    Changed,
    Claim,
    EffectiveRole,
    Group,
    GroupRole,
    GroupVerb,
    Membership,
    Person,
    PersonVerb,
)
from accessportal.directory.store.reading import get_group
from accessportal.kernel.actors import Actor
from accessportal.kernel.clock import to_epoch
from accessportal.kernel.errors import Conflict, NotFound
from accessportal.kernel.ports import after_commit
from accessportal.store.transactions import ConditionFailed, Guard, Insert, Overtaken, until_written

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


def end_of_chain(entity: str) -> tuple[int, str]:
    """Sequence and hash of the last event of ``entity``: the chain of what was deleted must not be started a second time."""
    newest = audit_queries.history(entity, limit=1).items
    return (newest[0].sequence, newest[0].hash) if newest else (0, "")


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


def held_by(email: str) -> tuple[Person, tuple[Membership, ...]]:
    """:raises NotFound: when nobody has this address."""
    person, memberships = Book().held_by(email)
    if person is None:
        raise NotFound("Nobody in the directory has this address.", code="person_not_found")
    return person, memberships


def membership_in(memberships: Sequence[Membership], group_id: str) -> Membership | None:
    return next((one for one in memberships if one.group_id == group_id), None)


def group_named(group_id: str) -> Group:
    """:raises NotFound: when there is no such group."""
    group = get_group(group_id) if is_group_id(group_id) else None
    if group is None:
        raise NotFound("There is no group with this path.", code="group_not_found")
    return group


def require_group_right(verb: GroupVerb, group: Group, *, actor: Actor, now: datetime) -> None:
    """:raises NotAllowed: unless the actor may do this with the group."""
    right = actor_right_on(group.group_id, actor=actor, now=now)
    may_with_group(verb, group=group, right=right, actor=actor).require()


def require_right_to_give(group: Group, role: GroupRole, *, to: str, is_new: bool, actor: Actor, now: datetime) -> EffectiveRole | None:
    """Return the actor's own right that ends and what they give with it; ``None``: it is given for good. :raises NotAllowed: unless they
    may give ``to`` (``is_new``: to be created with it) this role."""
    right = actor_right_on(group.group_id, actor=actor, now=now)
    may_with_group(GroupVerb.GRANT, group=group, right=right, actor=actor).require()
    ruling = may_give(group=group, role=role, right=right, is_own=to == actor.name, is_new=is_new, actor=actor)
    ruling.decision.require()
    return right if ruling.ends_at is not None else None


def require_right_to_take(claims: Sequence[Claim], group: Group, *, actor: Actor, now: datetime) -> None:
    """:raises NotAllowed: unless the actor may take away what these claims give in the group."""
    right = actor_right_on(group.group_id, actor=actor, now=now)
    may_take(claims, group=group, right=right, actor=actor).require()


def require_people_right(verb: PersonVerb, *, actor: Actor, now: datetime) -> None:
    """:raises NotAllowed: unless the actor may do this with people."""
    may_with_people(verb, right=actor_right_on(ROOT, actor=actor, now=now), actor=actor).require()


def require_not_deleting(person: Person) -> None:
    """:raises Conflict: when the person is being deleted."""
    if person.is_deleting:
        raise Conflict(f"{person.email} is being deleted.", code="person_deleting", present=person)


def is_standing_admin(person: Person, memberships: Sequence[Membership]) -> bool:
    """Whether the person is one of those of whom the root must always have one: enabled, with a permanent admin claim on it."""
    on_root = membership_in(memberships, ROOT)
    claim = on_root.claim(PERMANENT) if on_root else None
    return person.is_enabled and claim is not None and claim.role is GroupRole.ADMIN


def require_another_root_admin(person: Person) -> None:
    """:raises Conflict: when the root would be left without an admin."""
    root = get_group(ROOT)
    if root is not None and root.standing_admins <= {person.key}:
        raise Conflict(
            f"{person.email} is the last admin of {ROOT}. Make somebody else admin of {ROOT} first.", code="last_root_admin", present=root
        )
