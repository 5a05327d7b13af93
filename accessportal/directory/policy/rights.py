"""Who may do what in the directory. Roles are passed in as they stand at the moment of asking."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from datetime import datetime

from accessportal.directory.policy.words import is_email
from accessportal.directory.states import ROOT, Claim, EffectiveRole, Group, GroupRole, GroupVerb, PersonVerb, lasts
from accessportal.kernel.actors import Actor
from accessportal.kernel.decisions import Decision, allow, refuse
from accessportal.kernel.lasting import Right, Ruling, rule_on_effect

_WORDS = {
    GroupVerb.CREATE_GROUP: "create groups below it",
    GroupVerb.RENAME: "rename it",
    GroupVerb.DISABLE: "disable it",
    GroupVerb.ENABLE: "enable it",
    GroupVerb.DELETE: "delete it",
    GroupVerb.GRANT: "give roles in it",
    GroupVerb.REVOKE: "take roles in it away",
}
# What they give or take ends with the right, or is judged by itself (``may_give``, ``may_take``); the other verbs leave something
# for good.
_FOR_A_TIME = {GroupVerb.GRANT, GroupVerb.REVOKE}
_NEVER_WITH_THE_ROOT = {GroupVerb.DISABLE, GroupVerb.ENABLE, GroupVerb.DELETE}


def may_with_group(verb: GroupVerb, *, group: Group, right: EffectiveRole | None, actor: Actor) -> Decision:
    """Say whether ``actor``, with the role ``right`` on ``group``, may do this with it. Operators have no part in it: who is in which group
    decides who approves. Moving has its own function."""
    if verb in _NEVER_WITH_THE_ROOT and group.is_root:
        return _root_stays()
    if verb is GroupVerb.SEE_MEMBERS:
        return _may_see_members(role=right.role if right else None, actor=actor)
    if actor.is_system:
        return allow("the portal itself keeps the directory")
    if right is not None and right.role is GroupRole.ADMIN:
        decision = rule_on_effect(_as_admin(right, group.group_id)).decision
        return allow(f"admin of {group.group_id} or of a group above it") if decision.allowed or verb in _FOR_A_TIME else decision
    return refuse(f"Only admins of {group.group_id} or of a group above it may {_WORDS[verb]}. Ask one of them.", code="group_admins_only")


def may_leave(claim: Claim | None, *, group: Group, keepers: Collection[str], actor: Actor) -> Decision:
    """Say whether ``actor`` may leave what ``claim`` put them into for good. What the root's admins (``keepers``) or the portal gave stays:
    rules that refuse something to a group would refuse nothing if everybody in it could leave."""
    if claim is None:
        return refuse(f"You are not in {group.group_id} for good. What a request gives ends with the request.", code="not_in_group")
    if claim.given_by == actor.name or (is_email(claim.given_by) and claim.given_by not in keepers):
        return allow("put into the group by an admin of it, or by themselves")
    by = claim.given_by if is_email(claim.given_by) else "the portal"
    return refuse(f"You were put into {group.group_id} by {by}. Only an admin may take you out: ask an admin of /.", code="kept_in_group")


def may_give(*, group: Group, role: GroupRole, right: EffectiveRole | None, is_own: bool, is_new: bool, actor: Actor) -> Ruling:
    """Say whether an admin of ``group`` by ``right`` may give ``role`` in it, and until when. Who is admin for a time gives until then, but
    neither the role admin, nor to themselves (``is_own``), nor to new people (``is_new``): that would outlast it."""
    if actor.is_system or right is None:
        return Ruling(allow("the portal itself keeps the directory"), None)
    can_end = role is not GroupRole.ADMIN and not is_own and not is_new
    return rule_on_effect(_as_admin(right, group.group_id), can_end=can_end)


def may_take(claims: Iterable[Claim], *, group: Group, right: EffectiveRole | None, actor: Actor) -> Decision:
    """Whether ``actor``, who is admin of ``group`` by ``right``, may take away what these claims give: who stays is not removed by
    somebody who is admin for a time."""
    if actor.is_system or right is None:
        return allow("the portal itself keeps the directory")
    ends: list[datetime | None] = [claim.ends_at for claim in claims]
    return rule_on_effect(_as_admin(right, group.group_id), ends_at=max(ends, key=lasts)).decision


def may_move(group: Group, *, parents: Iterable[str], rights: Mapping[str, EffectiveRole], actor: Actor) -> Decision:
    """Whether ``actor``, who has ``rights`` on the groups above, may take ``group`` from one of ``parents`` to the other."""
    if group.is_root:
        return _root_stays()
    if actor.is_system:
        return allow("the portal itself keeps the directory")
    for parent_id in parents:
        right = rights.get(parent_id)
        if right is None or right.role is not GroupRole.ADMIN:
            return refuse(
                f"Only admins of {parent_id} or of a group above it may move groups out of it and into it. Ask one of them.",
                code="group_admins_only",
            )
        decision = rule_on_effect(_as_admin(right, parent_id)).decision
        if not decision.allowed:
            return decision
    return allow("admin of the groups above, or of one above them")


def may_with_people(verb: PersonVerb, *, right: EffectiveRole | None, actor: Actor) -> Decision:
    """Whether ``actor``, who has the role ``right`` on the root, may do this with any person. All of it is for good."""
    if actor.is_system:
        return allow("the portal itself keeps the directory")
    if right is not None and right.role is GroupRole.ADMIN:
        return rule_on_effect(_as_admin(right, ROOT)).decision
    return refuse(f"Only admins of the group {ROOT} may {verb.value} people. Ask one of them.", code="root_admins_only")


def may_see_person(key: str, *, is_admin_of_theirs: bool, actor: Actor) -> Decision:
    """Say whether ``actor`` may see the page of the person ``key``. ``is_admin_of_theirs``: of the root, or of a group (or of one above it)
    that the person is directly in."""
    if actor.reads_everything:
        return allow("operators, auditors and the portal itself see everybody")
    if actor.name == key:
        return allow("their own page")
    if is_admin_of_theirs:
        return allow("admin of a group that the person is in")
    return refuse("Only the person, their groups' admins, operators and auditors see this page.", code="person_not_visible")


def may_look_up_people(admin_of: Collection[str], *, actor: Actor) -> Decision:
    """Say whether ``actor`` may look up whom they may see: anybody, or the members of the groups that they are ``admin_of``."""
    if actor.reads_everything or admin_of:
        return allow("sees everybody, or the members of a group")
    return refuse("Only operators, auditors and admins of groups look people up. Type the whole address.", code="people_not_visible")


def _as_admin(right: EffectiveRole, group_id: str) -> Right:
    return Right(f"admin of {group_id}", right.ends_at)


def _root_stays() -> Decision:
    return refuse("The root of the tree is never moved, disabled or deleted.", code="group_is_root")


def _may_see_members(*, role: GroupRole | None, actor: Actor) -> Decision:
    if actor.reads_everything:
        return allow("operators, auditors and the portal itself see every group")
    if role is not None:
        return allow(f"{role.value} of the group")
    return refuse("Only people with a role in this group, operators and auditors see who is in it.", code="members_not_visible")
