"""The deeds of a group's admins."""

from __future__ import annotations

from collections.abc import Callable
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

Do = Callable[[Group, Data, Actor, datetime], Changed[Any]]
Tell = Callable[[Group, Data, Changed[Any]], Told]
Run = Callable[[Group, Data, Actor, datetime], Told]
_RIGHTS = {"add": GroupVerb.GRANT, "role": GroupVerb.GRANT, "remove": GroupVerb.REVOKE, "create": GroupVerb.CREATE_GROUP}


def right_of(name: str) -> GroupVerb:
    """The right that the deed of this name needs."""
    return _RIGHTS.get(name) or GroupVerb(name)


def _may(name: str, group: Group, actor: Actor, now: datetime) -> Decision:
    return queries.may(verb=right_of(name), group=group, actor=actor, now=now)


def _then(do: Do, tell: Tell) -> Run:
    def run(group: Group, data: Data, actor: Actor, now: datetime) -> Told:
        return tell(group, data, do(group, data, actor, now))

    return run


def child_id(group: Group, data: Data) -> str:
    """The id of a new group right below ``group``."""
    return f"{group.group_id.rstrip('/')}/{data.get('part', '')}"


def _add(group: Group, data: Data, actor: Actor, now: datetime) -> Changed[Any]:
    email, role = str(data["email"]), GroupRole(data["role"])
    if queries.find_person(email=email) is not None:
        return directory.grant_membership(email=email, group_id=group.group_id, role=role, actor=actor, now=now)
    queries.clean_email(email)
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


def _set_state(state: State) -> Do:
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
        return Told(
            done.format(**words) + higher,
            address_of(group.group_id),
            doing.format(**words) + higher,
            person_entity(fold_email(data["email"])),
            about=group.group_id,
            mirror=changed.mirror,
        )

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
    about = "" if changed.record is None else group.group_id
    return Told(done, address_of(group.group_id), doing, person_entity(fold_email(who)), about, changed.mirror)


def _left(group: Group, data: Data, changed: Changed[Any]) -> Told:
    stays = _by_requests(group, changed.record.key)
    kept = f" By a request you stay in it, as {stays.value}, until its end." if stays is not None else ""
    doing = f"You are leaving {group.name}, Cognito has not confirmed yet.{kept}"
    done = f"You have left {group.name}.{kept}"
    return Told(done, address_of(group.group_id), doing, changed.record.entity, about=group.group_id, mirror=changed.mirror)


def _about_group(doing: str, done: str) -> Tell:
    def told(group: Group, data: Data, changed: Changed[Any]) -> Told:
        words = {"group": group.name}
        return Told(done.format(**words), address_of(group.group_id), doing.format(**words), group.entity, mirror=changed.mirror)

    return told


def _created(group: Group, data: Data, changed: Changed[Any]) -> Told:
    made = child_id(group, data)
    words = f"{data['name']} ({made})"
    doing = f"{words} is created, Cognito has not confirmed its groups yet."
    return Told(f"Created {words}.", address_of(made), doing, group_entity(made), mirror=changed.mirror)


def _deleted(group: Group, data: Data, changed: Changed[Any]) -> Told:
    words = f"{group.name} ({group.group_id})"
    doing = f"{words} is being deleted, Cognito has not confirmed yet."
    return Told(f"Deleted {words}.", address_of(group.parent_id or ROOT), doing, group.entity, mirror=changed.mirror)


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
            may=partial(_may, "add"),
            label="Add a person",
            question=lambda group: f"Add a person to {group.name}",
            explain=lambda group: (
                "They are in the group at once, and without an end unless you are its admin for a time yourself: then until that is over. "
                "The role counts in every group below it, too."
            ),
            button="Add",
            form=AddPersonForm,
            run=_then(
                _add,
                _about_member(
                    "{who} is being added to {group} as {role}{end}, Cognito has not confirmed yet.",
                    "Added {who} to {group} as {role}{end}.",
                ),
            ),
            fits=lambda group: group.is_enabled,
            starts_with=_starts_as_member,
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
            button="Change role",
            form=RoleForm,
            run=_then(
                _change_role,
                _about_member(
                    "{who} is being made {role} of {group}, Cognito has not confirmed yet.",
                    "{who} is {role} of {group} now{end}.",
                    always=", without an end",
                ),
            ),
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
            button="Remove",
            form=MemberForm,
            run=_then(_remove, _removed),
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
            button="Leave",
            run=_then(_leave, _left),
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
            run=_then(_create, _created),
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
            run=_then(_rename, _about_group("Saved. Cognito has not confirmed yet.", "Saved.")),
            starts_with=_starts_named,
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
            button="Move",
            form=MoveForm,
            run=_then(_move, _about_group("{group} is being moved, Cognito has not confirmed yet.", "Moved {group}.")),
            fits=_is_not_root,
            is_destructive=True,
            is_page=True,
        ),
        Deed(
            name="enable",
            may=partial(_may, "enable"),
            label="Enable",
            question=lambda group: f"Enable {group.name}?",
            explain=lambda group: "Its memberships count again from now on.",
            button="Enable",
            run=_then(
                _set_state(State.ENABLED), _about_group("{group} is being enabled, Cognito has not confirmed yet.", "Enabled {group}.")
            ),
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
            button="Disable",
            run=_then(
                _set_state(State.DISABLED), _about_group("{group} is being disabled, Cognito has not confirmed yet.", "Disabled {group}.")
            ),
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
            run=_then(_delete, _deleted),
            fits=lambda group: group.is_empty and not group.is_root,
            is_destructive=True,
        ),
    )
}
MEMBER_DEEDS = ("role", "remove")
"""Those that are about one member, named by the form's ``email``."""
