"""The deeds of a group's admins."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime
from typing import Any

from django.urls import reverse

from accessportal.access_requests.queries import ACCESS_ENDS, ACCESS_OF_GROUP_ENDS
from accessportal.directory import operations as directory
from accessportal.directory import queries
from accessportal.directory.queries import importing
from accessportal.directory.states import ROOT, Changed, Group, GroupRole, State, group_entity, person_entity
from accessportal.kernel.actors import Actor, fold_email
from accessportal.kernel.clock import SystemClock
from accessportal.kernel.errors import InvalidRequest
from accessportal.portal.deeds import Data, Deed, Told
from accessportal.portal.directory_forms import (
    AddPersonForm,
    DeedForm,
    MemberForm,
    MoveForm,
    NewGroupForm,
    RenameGroupForm,
    RoleForm,
)

Run = Callable[[Group, Data, Actor, datetime], Changed[Any]]
Tell = Callable[[Group, Data, Changed[Any]], Told]


def child_id(group: Group, data: Data) -> str:
    """The id of a new group right below ``group``."""
    return f"{group.group_id.rstrip('/')}/{data.get('part', '')}"


def _add(group: Group, data: Data, actor: Actor, now: datetime) -> Changed[Any]:
    email, role = str(data["email"]), GroupRole(data["role"])
    if queries.find_person(email=email) is not None:
        return directory.grant_membership(email=email, group_id=group.group_id, role=role, actor=actor, now=now)
    importing.clean_email(email=email)
    if not data["name"]:
        text = "Nobody in the directory has this address. Check it, or give the person's name to create them and add them in one step."
        raise InvalidRequest(text, code="person_unknown", field="name")
    return directory.create_person(email=email, name=str(data["name"]), group_id=group.group_id, role=role, actor=actor, now=now)


def _change_role(group: Group, data: Data, actor: Actor, now: datetime) -> Changed[Any]:
    return directory.grant_membership(email=data["email"], group_id=group.group_id, role=GroupRole(data["role"]), actor=actor, now=now)


def _remove(group: Group, data: Data, actor: Actor, now: datetime) -> Changed[Any]:
    return directory.revoke_membership(email=data["email"], group_id=group.group_id, actor=actor, now=now)


def _leave(group: Group, data: Data, actor: Actor, now: datetime) -> Changed[Any]:
    return directory.leave_group(group_id=group.group_id, actor=actor, now=now)


def _create(group: Group, data: Data, actor: Actor, now: datetime) -> Changed[Any]:
    return directory.create_group(
        group_id=child_id(group, data),
        name=data["name"],
        description=data["description"],
        parent_id=group.group_id,
        actor=actor,
        now=now,
    )


def _rename(group: Group, data: Data, actor: Actor, now: datetime) -> Changed[Any]:
    return directory.rename_group(group_id=group.group_id, name=data["name"], description=data["description"], actor=actor, now=now)


def _move(group: Group, data: Data, actor: Actor, now: datetime) -> Changed[Any]:
    return directory.move_group(group_id=group.group_id, parent_id=data["parent_id"], actor=actor, now=now)


def _set_state(state: State) -> Run:
    def run(group: Group, data: Data, actor: Actor, now: datetime) -> Changed[Any]:
        return directory.set_group_state(group_id=group.group_id, state=state, actor=actor, now=now)

    return run


def _delete(group: Group, data: Data, actor: Actor, now: datetime) -> Changed[Any]:
    return directory.delete_group(group_id=group.group_id, actor=actor, now=now)


def address_of(group_id: str) -> str:
    return reverse("group", args=[group_id])


def _by_requests(group: Group, email: str) -> GroupRole | None:
    return queries.role_by_requests(email=email, group_id=group.group_id, now=SystemClock().now())


def _about_member(doing: str, done: str, *, always: str = "") -> Tell:
    def told(group: Group, data: Data, changed: Changed[Any]) -> Told:
        given = GroupRole(data["role"])
        lasts = queries.find_lasting_role(email=data["email"], group_id=group.group_id) is given
        end = always if lasts else ", for as long as you are its admin"
        words = {"who": data["email"], "group": group.name, "role": given.value, "end": end}
        more = _by_requests(group, data["email"])
        higher = f" By a request they are {more.value} until its end." if more is not None and more.rank > given.rank else ""
        entity = person_entity(fold_email(data["email"]))
        return Told(entity, doing.format(**words) + higher, done.format(**words) + higher, address_of(group.group_id), about=group.group_id)

    return told


def _removed(group: Group, data: Data, changed: Changed[Any]) -> Told:
    who = data["email"]
    # The last membership takes the person with it (seed 001).
    end = f" It was their last group, so they are no longer in the directory. {ACCESS_ENDS}" if changed.record is None else ""
    doing, done = f"{who} is being removed from {group.name}, Cognito has not confirmed yet.{end}", f"Removed {who} from {group.name}.{end}"
    stays = _by_requests(group, who)
    if stays is not None:
        kept = f" By a request they stay in it, as {stays.value}, until its end."
        doing = f"The lasting role of {who} in {group.name} is being taken back, Cognito has not confirmed yet.{kept}"
        done = f"Took back the lasting role of {who} in {group.name}.{kept}"
    return Told(
        person_entity(fold_email(who)),
        doing,
        done,
        address_of(group.group_id),
        about="" if changed.record is None else group.group_id,
    )


def _left(group: Group, data: Data, changed: Changed[Any]) -> Told:
    stays = _by_requests(group, changed.record.key)
    kept = f" By a request you stay in it, as {stays.value}, until its end." if stays is not None else ""
    doing = f"You are leaving {group.name}, Cognito has not confirmed yet.{kept}"
    return Told(changed.record.entity, doing, f"You have left {group.name}.{kept}", address_of(group.group_id), about=group.group_id)


def _about_group(doing: str, done: str) -> Tell:
    def told(group: Group, data: Data, changed: Changed[Any]) -> Told:
        return Told(group.entity, doing.format(group=group.name), done.format(group=group.name), address_of(group.group_id))

    return told


def _created(group: Group, data: Data, changed: Changed[Any]) -> Told:
    made = child_id(group, data)
    words = f"{data['name']} ({made})"
    return Told(group_entity(made), f"{words} is created, Cognito has not confirmed its groups yet.", f"Created {words}.", address_of(made))


def _deleted(group: Group, data: Data, changed: Changed[Any]) -> Told:
    return Told(
        group.entity,
        f"{group.name} ({group.group_id}) is being deleted, Cognito has not confirmed yet.",
        f"Deleted {group.name} ({group.group_id}).",
        address_of(group.parent_id or ROOT),
    )


def _is_not_root(group: Group) -> bool:
    return not group.is_root


def _starts_as_member(group: Group, given: Data) -> dict[str, Any]:
    return {"role": GroupRole.READER.value, **given}


def _starts_named(group: Group, given: Data) -> dict[str, Any]:
    return {"name": group.name, "description": group.description}


GROUP_DEEDS: dict[str, Deed[Group]] = {
    deed.name: deed
    for deed in (
        Deed(
            name="add",
            right="grant",
            label="Add a person",
            question=lambda group, data: f"Add a person to {group.name}",
            explain=lambda group, data: (
                "They are in the group at once, and without an end unless you are its admin for a time yourself: then until that is over. "
                "The role counts in every group below it, too."
            ),
            button="Add",
            form=AddPersonForm,
            run=_add,
            told=_about_member(
                "{who} is being added to {group} as {role}{end}, Cognito has not confirmed yet.", "Added {who} to {group} as {role}{end}."
            ),
            fits=lambda group: group.is_enabled,
            starts_with=_starts_as_member,
        ),
        Deed(
            name="role",
            right="grant",
            label="Change role",
            question=lambda group, data: f"Change the role in {group.name}",
            explain=lambda group, data: (
                "The new role counts at once, here and in every group below, without a moment of no access; without an end, "
                "unless you are its admin for a time yourself."
            ),
            button="Change role",
            form=RoleForm,
            run=_change_role,
            told=_about_member(
                "{who} is being made {role} of {group}, Cognito has not confirmed yet.",
                "{who} is {role} of {group} now{end}.",
                always=", without an end",
            ),
            fits=lambda group: group.is_enabled,
        ),
        Deed(
            name="remove",
            right="revoke",
            label="Remove",
            question=lambda group, data: f"Remove this person from {group.name}?",
            explain=lambda group, data: (
                f"They lose the role here and in every group below, unless another group gives it. {ACCESS_OF_GROUP_ENDS} "
                f"Somebody enabled who came with a group and is in none any more is deleted from the directory. {ACCESS_ENDS}"
            ),
            button="Remove",
            form=MemberForm,
            run=_remove,
            told=_removed,
            is_destructive=True,
        ),
        Deed(
            name="leave",
            right="leave",
            label="Leave",
            question=lambda group, data: f"Leave {group.name}?",
            explain=lambda group, data: (
                "You lose the role here and in every group below, unless another group gives it, and rules that name the group see you no "
                f"longer. Only an admin can add you again, or a request. {ACCESS_OF_GROUP_ENDS}"
            ),
            button="Leave",
            form=DeedForm,
            run=_leave,
            told=_left,
            is_destructive=True,
        ),
        Deed(
            name="create",
            right="create_group",
            label="Create a group below",
            question=lambda group, data: f"Create a group below {group.name}",
            explain=lambda group, data: f"It starts empty. Whoever has a role on {group.name} has it there, too.",
            button="Create group",
            form=NewGroupForm,
            run=_create,
            told=_created,
            fits=lambda group: group.is_enabled,
        ),
        Deed(
            name="rename",
            right="rename",
            label="Rename",
            question=lambda group, data: f"Rename {group.name}",
            explain=lambda group, data: f"Its id stays {group.group_id}, so rules and memberships are not touched.",
            button="Save",
            form=RenameGroupForm,
            run=_rename,
            told=_about_group("Saved. Cognito has not confirmed yet.", "Saved."),
            starts_with=_starts_named,
        ),
        Deed(
            name="move",
            right="move",
            label="Move",
            question=lambda group, data: f"Move {group.name} to another place",
            explain=lambda group, data: (
                f"Everything below {group.name} goes with it. Roles inherited from the groups above change at once: "
                f"those of the old place end, those of the new place count. {ACCESS_OF_GROUP_ENDS} Its id stays."
            ),
            button="Move",
            form=MoveForm,
            run=_move,
            told=_about_group("{group} is being moved, Cognito has not confirmed yet.", "Moved {group}."),
            fits=_is_not_root,
            is_destructive=True,
            is_page=True,
        ),
        Deed(
            name="enable",
            right="enable",
            label="Enable",
            question=lambda group, data: f"Enable {group.name}?",
            explain=lambda group, data: "Its memberships count again from now on.",
            button="Enable",
            form=DeedForm,
            run=_set_state(State.ENABLED),
            told=_about_group("{group} is being enabled, Cognito has not confirmed yet.", "Enabled {group}."),
            fits=lambda group: not group.is_enabled,
        ),
        Deed(
            name="disable",
            right="disable",
            label="Disable",
            question=lambda group, data: f"Disable {group.name}?",
            explain=lambda group, data: (
                f"Nobody is in it any more, and its direct memberships ({group.member_count}) give nothing, here and below, until it is "
                f"enabled again. Groups below stay as they are. {ACCESS_OF_GROUP_ENDS}"
            ),
            button="Disable",
            form=DeedForm,
            run=_set_state(State.DISABLED),
            told=_about_group("{group} is being disabled, Cognito has not confirmed yet.", "Disabled {group}."),
            fits=lambda group: group.is_enabled and not group.is_root,
            is_destructive=True,
        ),
        Deed(
            name="delete",
            right="delete",
            label="Delete",
            question=lambda group, data: f"Delete {group.name}?",
            explain=lambda group, data: (
                f"The group {group.group_id} is gone for good. It must have no members and no groups below. "
                "Its history stays in the audit log."
            ),
            button="Delete group",
            form=DeedForm,
            run=_delete,
            told=_deleted,
            fits=_is_not_root,
            is_destructive=True,
        ),
    )
}
MEMBER_DEEDS = ("role", "remove")
"""Those that are about one member, named by the form's ``email``."""
