"""The deeds of a group's admins."""

from __future__ import annotations

from dataclasses import replace
from datetime import datetime
from functools import partial
from typing import Any

from django.urls import reverse

from accessportal.access_requests.queries import ACCESS_ENDS, ACCESS_OF_GROUP_ENDS
from accessportal.directory import operations as directory
from accessportal.directory import queries
from accessportal.directory.states import ROOT, Changed, Group, GroupRole, GroupVerb, State, group_entity, person_entity
from accessportal.kernel.actors import Actor, fold_email
from accessportal.kernel.clock import SystemClock
from accessportal.kernel.decisions import Decision
from accessportal.kernel.errors import InvalidRequest
from accessportal.portal.directory.forms import (
    AddPersonForm,
    MemberForm,
    MoveForm,
    NewGroupForm,
    RenameGroupForm,
    RoleForm,
)
from accessportal.web.deeds import Data, Deed, Told

_RIGHTS = {"add": GroupVerb.GRANT, "role": GroupVerb.GRANT, "remove": GroupVerb.REVOKE, "create": GroupVerb.CREATE_GROUP}


def right_of(name: str) -> GroupVerb:
    """The right that the deed of this name needs."""
    return _RIGHTS.get(name) or GroupVerb(name)


def _may(name: str, group: Group, actor: Actor, now: datetime) -> Decision:
    return queries.may(verb=right_of(name), group=group, actor=actor, now=now)


def child_id(group: Group, data: Data) -> str:
    """The id of a new group right below ``group``."""
    return f"{group.group_id.rstrip('/')}/{data.get('part', '')}"


def address_of(group_id: str) -> str:
    return reverse("group", args=[group_id])


def _told(changed: Changed[Any], doing: str, done: str, group: Group, more: str = "") -> Told:
    """What was done to the group; ``more`` is true already while Cognito follows."""
    words = f"{doing}, Cognito has not confirmed yet.{more}"
    return Told(f"{done}.{more}", address_of(group.group_id), words, group.entity, mirror=changed.mirror)


def _told_of_member(email: str, changed: Changed[Any], doing: str, done: str, group: Group, more: str) -> Told:
    return replace(_told(changed, doing, done, group, more), entity=person_entity(fold_email(email)), about=group.group_id)


def _by_requests(group: Group, email: str) -> GroupRole | None:
    return queries.role_by_requests(email=email, group_id=group.group_id, now=SystemClock().now())


def _higher(group: Group, data: Data) -> str:
    """Where a request gives more than the role that was just given."""
    more = _by_requests(group, data["email"])
    return f" By a request they are {more.value} until its end." if more and more.rank > GroupRole(data["role"]).rank else ""


def _end_of(group: Group, data: Data, *, lasting: str = "") -> str:
    """For how long the role is that was just given to somebody."""
    lasts = queries.find_lasting_role(email=data["email"], group_id=group.group_id) is GroupRole(data["role"])
    return lasting if lasts else ", for as long as you are its admin"


def _add(group: Group, data: Data, actor: Actor, now: datetime) -> Told:
    who, changed = data["email"], _grant_or_create(group, data, actor, now)
    place = f"{group.name} as {data['role']}{_end_of(group, data)}"
    return _told_of_member(who, changed, f"{who} is being added to {place}", f"Added {who} to {place}", group, _higher(group, data))


def _grant_or_create(group: Group, data: Data, actor: Actor, now: datetime) -> Changed[Any]:
    email, role = str(data["email"]), GroupRole(data["role"])
    if queries.find_person(email=email) is not None:
        return directory.grant_membership(email=email, group_id=group.group_id, role=role, actor=actor, now=now)
    queries.clean_email(email)
    if not data["name"]:
        text = "Nobody in the directory has this address. Check it, or give the person's name to create them and add them in one step."
        raise InvalidRequest(text, code="person_unknown", field="name")
    return directory.create_person(email=email, name=str(data["name"]), group_id=group.group_id, role=role, actor=actor, now=now)


def _change_role(group: Group, data: Data, actor: Actor, now: datetime) -> Told:
    who, role = data["email"], f"{data['role']} of {group.name}"
    changed = directory.grant_membership(email=who, group_id=group.group_id, role=GroupRole(data["role"]), actor=actor, now=now)
    done = f"{who} is {role} now{_end_of(group, data, lasting=', without an end')}"
    return _told_of_member(who, changed, f"{who} is being made {role}", done, group, _higher(group, data))


def _remove(group: Group, data: Data, actor: Actor, now: datetime) -> Told:
    who = data["email"]
    changed = directory.revoke_membership(email=who, group_id=group.group_id, actor=actor, now=now)
    # The last membership takes the person with it (seed 001).
    end = f" It was their last group, so they are no longer in the directory. {ACCESS_ENDS}" if changed.record is None else ""
    doing, done = f"{who} is being removed from {group.name}", f"Removed {who} from {group.name}"
    stays = _by_requests(group, who)
    if stays is not None:
        end = f" By a request they stay in it, as {stays.value}, until its end."
        doing = f"The lasting role of {who} in {group.name} is being taken back"
        done = f"Took back the lasting role of {who} in {group.name}"
    told = _told_of_member(who, changed, doing, done, group, end)
    return replace(told, about="") if changed.record is None else told


def _leave(group: Group, _data: Data, actor: Actor, now: datetime) -> Told:
    changed = directory.leave_group(group_id=group.group_id, actor=actor, now=now)
    who = changed.record.key
    stays = _by_requests(group, who)
    kept = f" By a request you stay in it, as {stays.value}, until its end." if stays is not None else ""
    return _told_of_member(who, changed, f"You are leaving {group.name}", f"You have left {group.name}", group, kept)


def _create(group: Group, data: Data, actor: Actor, now: datetime) -> Told:
    made, name = child_id(group, data), data["name"]
    changed = directory.create_group(
        group_id=made, name=name, description=data["description"], parent_id=group.group_id, actor=actor, now=now
    )
    doing = f"{name} ({made}) is created, Cognito has not confirmed its groups yet."
    return Told(f"Created {name} ({made}).", address_of(made), doing, group_entity(made), mirror=changed.mirror)


def _rename(group: Group, data: Data, actor: Actor, now: datetime) -> Told:
    changed = directory.rename_group(group_id=group.group_id, name=data["name"], description=data["description"], actor=actor, now=now)
    return Told("Saved.", address_of(group.group_id), "Saved. Cognito has not confirmed yet.", group.entity, mirror=changed.mirror)


def _move(group: Group, data: Data, actor: Actor, now: datetime) -> Told:
    changed = directory.move_group(group_id=group.group_id, parent_id=data["parent_id"], actor=actor, now=now)
    return _told(changed, f"{group.name} is being moved", f"Moved {group.name}", group)


def _set_state(state: State, group: Group, _data: Data, actor: Actor, now: datetime) -> Told:
    changed = directory.set_group_state(group_id=group.group_id, state=state, actor=actor, now=now)
    return _told(changed, f"{group.name} is being {state.value}", f"{state.value.capitalize()} {group.name}", group)


def _delete(group: Group, _data: Data, actor: Actor, now: datetime) -> Told:
    changed = directory.delete_group(group_id=group.group_id, actor=actor, now=now)
    words = f"{group.name} ({group.group_id})"
    told = _told(changed, f"{words} is being deleted", f"Deleted {words}", group)
    return replace(told, url=address_of(group.parent_id or ROOT))


GROUP_DEEDS: dict[str, Deed[Group]] = {
    deed.name: deed
    for deed in (
        Deed(
            name="add",
            may=partial(_may, "add"),
            label="Add a person",
            question=lambda group: f"Add a person to {group.name}",
            explain=lambda group: (
                "They are in the group at once, and without an end unless you are its admin for a time yourself: then until that is over. "
                "The role counts in every group below it, too."
            ),
            button="Add",
            form=AddPersonForm,
            run=_add,
            fits=lambda group: group.is_enabled,
            starts_with=lambda _group, given: {"role": GroupRole.READER.value, **given},
        ),
        Deed(
            name="role",
            may=partial(_may, "role"),
            label="Change role",
            question=lambda group: f"Change the role in {group.name}",
            explain=lambda group: (
                "The new role counts at once, here and in every group below, without a moment of no access; without an end, "
                "unless you are its admin for a time yourself."
            ),
            form=RoleForm,
            run=_change_role,
            fits=lambda group: group.is_enabled,
        ),
        Deed(
            name="remove",
            may=partial(_may, "remove"),
            label="Remove",
            question=lambda group: f"Remove this person from {group.name}?",
            explain=lambda group: (
                f"They lose the role here and in every group below, unless another group gives it. {ACCESS_OF_GROUP_ENDS} "
                f"Somebody enabled who came with a group and is in none any more is deleted from the directory. {ACCESS_ENDS}"
            ),
            form=MemberForm,
            run=_remove,
            is_destructive=True,
        ),
        Deed(
            name="leave",
            may=partial(_may, "leave"),
            label="Leave",
            question=lambda group: f"Leave {group.name}?",
            explain=lambda group: (
                "You lose the role here and in every group below, unless another group gives it, and rules that name the group see you no "
                f"longer. Only an admin can add you again, or a request. {ACCESS_OF_GROUP_ENDS}"
            ),
            run=_leave,
            is_destructive=True,
        ),
        Deed(
            name="create",
            may=partial(_may, "create"),
            label="Create a group below",
            question=lambda group: f"Create a group below {group.name}",
            explain=lambda group: f"It starts empty. Whoever has a role on {group.name} has it there, too.",
            button="Create group",
            form=NewGroupForm,
            run=_create,
            fits=lambda group: group.is_enabled,
        ),
        Deed(
            name="rename",
            may=partial(_may, "rename"),
            label="Rename",
            question=lambda group: f"Rename {group.name}",
            explain=lambda group: f"Its id stays {group.group_id}, so rules and memberships are not touched.",
            button="Save",
            form=RenameGroupForm,
            run=_rename,
            starts_with=lambda group, _given: {"name": group.name, "description": group.description},
        ),
        Deed(
            name="move",
            may=partial(_may, "move"),
            label="Move",
            question=lambda group: f"Move {group.name} to another place",
            explain=lambda group: (
                f"Everything below {group.name} goes with it. Roles inherited from the groups above change at once: "
                f"those of the old place end, those of the new place count. {ACCESS_OF_GROUP_ENDS} Its id stays."
            ),
            form=MoveForm,
            run=_move,
            fits=lambda group: not group.is_root,
            is_destructive=True,
            is_page=True,
        ),
        Deed(
            name="enable",
            may=partial(_may, "enable"),
            label="Enable",
            question=lambda group: f"Enable {group.name}?",
            explain=lambda group: "Its memberships count again from now on.",
            run=partial(_set_state, State.ENABLED),
            fits=lambda group: not group.is_enabled,
        ),
        Deed(
            name="disable",
            may=partial(_may, "disable"),
            label="Disable",
            question=lambda group: f"Disable {group.name}?",
            explain=lambda group: (
                f"Nobody is in it any more, and its direct memberships ({group.member_count}) give nothing, here and below, until it is "
                f"enabled again. Groups below stay as they are. {ACCESS_OF_GROUP_ENDS}"
            ),
            run=partial(_set_state, State.DISABLED),
            fits=lambda group: group.is_enabled and not group.is_root,
            is_destructive=True,
        ),
        Deed(
            name="delete",
            may=partial(_may, "delete"),
            label="Delete",
            question=lambda group: f"Delete {group.name}?",
            explain=lambda group: (
                f"The group {group.group_id} is gone for good. It must have no members and no groups below. "
                "Its history stays in the audit log."
            ),
            button="Delete group",
            run=_delete,
            fits=lambda group: group.is_empty and not group.is_root,
            is_destructive=True,
        ),
    )
}
MEMBER_DEEDS = ("role", "remove")
"""Those that are about one member, named by the form's ``email``."""
