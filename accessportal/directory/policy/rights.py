"""Who may do what in the directory. Roles are passed in as they stand at the moment of asking."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping

from accessportal.directory.policy.words import is_email
from accessportal.directory.states import ROOT, Claim, Group, GroupRole, GroupVerb, PersonVerb
from accessportal.kernel.actors import Actor
from accessportal.kernel.decisions import Decision, allow, refuse

_WORDS = {
    GroupVerb.CREATE_GROUP: "create groups below it",
    GroupVerb.RENAME: "rename it",
    GroupVerb.DISABLE: "disable it",
    GroupVerb.ENABLE: "enable it",
    GroupVerb.DELETE: "delete it",
    GroupVerb.GRANT: "give roles in it",
    GroupVerb.REVOKE: "take roles in it away",
}
_NEVER_WITH_THE_ROOT = {GroupVerb.DISABLE, GroupVerb.ENABLE, GroupVerb.DELETE}


def may_with_group(verb: GroupVerb, *, group: Group, role: GroupRole | None, actor: Actor) -> Decision:
    """Whether ``actor``, who has ``role`` on ``group`` (given there or above), may do this with it.

    Operators have no part in it: who is in which group decides who approves, and so it lies with the groups' own admins.
    Moving has its own function, because it asks for a role on the parents.
    """
    if verb in _NEVER_WITH_THE_ROOT and group.is_root:
        return _root_stays()
    if verb is GroupVerb.SEE_MEMBERS:
        return _may_see_members(role=role, actor=actor)
    if actor.is_system:
        return allow("the portal itself keeps the directory")
    if role is GroupRole.ADMIN:
        return allow(f"admin of {group.group_id} or of a group above it")
    return refuse(f"Only admins of {group.group_id} or of a group above it may {_WORDS[verb]}. Ask one of them.", code="group_admins_only")


def may_leave(claim: Claim | None, *, group: Group, keepers: Collection[str], actor: Actor) -> Decision:
    """Whether ``actor``, whom ``claim`` puts into ``group`` for good, may leave it: whatever a group's admin put them into.

    ``keepers`` are the admins of the root. What they or the portal gave stays: rules that refuse something to a group would refuse
    nothing if everybody in it could leave.
    """
    if claim is None:
        return refuse(f"You are not in {group.group_id} for good. What a request gives ends with the request.", code="not_in_group")
    if claim.given_by == actor.name or (is_email(claim.given_by) and claim.given_by not in keepers):
        return allow("put into the group by an admin of it, or by themselves")
    by = claim.given_by if is_email(claim.given_by) else "the portal"
    return refuse(f"You were put into {group.group_id} by {by}. Only an admin may take you out: ask an admin of /.", code="kept_in_group")


def may_give_for_good(*, group: Group, lasting: GroupRole | None, is_own: bool, actor: Actor) -> Decision:
    """Whether ``actor``, who may give roles in ``group`` and has ``lasting`` on it without an end, may make somebody admin
    without one, or (``is_own``) give themselves any role without one. Other roles every admin gives. Who is admin for a time
    must not outlast it, neither by themselves nor by another admin's hand."""
    if actor.is_system or lasting is GroupRole.ADMIN:
        return allow("admin without an end, or the portal itself")
    until_the_end = f"You are admin of {group.group_id} only until your request ends. "
    if is_own:
        return refuse(until_the_end + "Ask an admin who stays to give you a role without an end.", code="admin_for_a_time")
    return refuse(until_the_end + "Give another role, or ask an admin who stays to make somebody admin.", code="admin_for_a_time")


def may_move(group: Group, *, parents: Iterable[str], roles: Mapping[str, GroupRole], actor: Actor) -> Decision:
    """Whether ``actor``, who has ``roles`` on the groups above, may take ``group`` from one of ``parents`` to the other."""
    if group.is_root:
        return _root_stays()
    if actor.is_system:
        return allow("the portal itself keeps the directory")
    for parent_id in parents:
        if roles.get(parent_id) is not GroupRole.ADMIN:
            return refuse(
                f"Only admins of {parent_id} or of a group above it may move groups out of it and into it. Ask one of them.",
                code="group_admins_only",
            )
    return allow("admin of the groups above, or of one above them")


def may_with_people(verb: PersonVerb, *, root_role: GroupRole | None, actor: Actor) -> Decision:
    """Whether ``actor``, who has ``root_role`` on the root, may do this with any person."""
    if actor.is_system:
        return allow("the portal itself keeps the directory")
    if root_role is GroupRole.ADMIN:
        return allow("admin of the root")
    return refuse(f"Only admins of the group {ROOT} may {verb.value} people. Ask one of them.", code="root_admins_only")


def may_see_person(key: str, *, is_admin_of_theirs: bool, actor: Actor) -> Decision:
    """Whether ``actor`` may see the page of the person ``key``.

    ``is_admin_of_theirs``: admin of the root, or of a group (or of one above it) that the person is directly in.
    """
    if actor.reads_everything:
        return allow("operators, auditors and the portal itself see everybody")
    if actor.name == key:
        return allow("their own page")
    if is_admin_of_theirs:
        return allow("admin of a group that the person is in")
    return refuse("Only the person, their groups' admins, operators and auditors see this page.", code="person_not_visible")


def _root_stays() -> Decision:
    return refuse("The root of the tree is never moved, disabled or deleted.", code="group_is_root")


def _may_see_members(*, role: GroupRole | None, actor: Actor) -> Decision:
    if actor.reads_everything:
        return allow("operators, auditors and the portal itself see every group")
    if role is not None:
        return allow(f"{role.value} of the group")
    return refuse("Only people with a role in this group, operators and auditors see who is in it.", code="members_not_visible")
