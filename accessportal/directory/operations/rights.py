"""Refuse what the actor has no right to do with a group, its memberships or people, by their rights as stored now."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime

from accessportal.directory.policy.rights import may_give, may_take, may_with_group, may_with_people
from accessportal.directory.queries.rights import actor_right_on
from accessportal.directory.states import ROOT, Claim, EffectiveRole, Group, GroupRole, GroupVerb, PersonVerb
from accessportal.kernel.actors import Actor


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
