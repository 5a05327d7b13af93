"""Making, renaming, enabling, disabling and deleting groups."""

from __future__ import annotations

from dataclasses import replace
from datetime import datetime

from accessportal.audit.operations import told
from accessportal.audit.queries import end_of_chain
from accessportal.audit.states import Draft
from accessportal.directory.operations.finding import group_named
from accessportal.directory.operations.rights import require_group_right
from accessportal.directory.operations.writing import ask_to_look, mirrored, settled
from accessportal.directory.policy.tree import path_ancestors, require_depth, require_parent
from accessportal.directory.policy.words import clean_description, clean_group_id, clean_name, is_group_id
from accessportal.directory.states import ROOT, Changed, Group, GroupVerb, State, group_entity
from accessportal.directory.store.groups import MOST_GROUPS, change_group, insert_group, remove_group
from accessportal.directory.store.reading import count_groups, get_group, get_groups
from accessportal.kernel.actors import Actor
from accessportal.kernel.errors import Conflict


def create_group(
    *, group_id: str, name: str, description: str, parent_id: str | None = None, actor: Actor, now: datetime
) -> Changed[Group]:
    """Create an enabled, empty group below ``parent_id``, or below the leading part of its path, for admins of the parent. Where the path
    leads elsewhere they must be admins there, too: rules and programs know groups by their path."""
    clean_group_id(group_id)
    wanted = Group(group_id, clean_name(name), clean_description(description), State.ENABLED, created_at=now)
    place = parent_id or path_ancestors(group_id)[-1]
    field = "parent_id" if parent_id else "group_id"

    def attempt() -> Group:
        above = path_ancestors(group_id)
        present = get_groups({group_id, *above, *filter(is_group_id, [place])})
        if ROOT not in present:
            raise Conflict("The directory has no root yet. Run found_directory first.", code="directory_not_founded")
        parent = require_parent(present.get(place), place, field=field)
        new = replace(wanted, ancestors=(*parent.ancestors, place))
        require_depth([new], field=field)
        named_after = next(present[one] for one in reversed(above) if one in present)
        for responsible in {place: parent, named_after.group_id: named_after}.values():
            require_group_right(GroupVerb.CREATE_GROUP, responsible, actor=actor, now=now)
        if group_id in present:
            raise Conflict(f"The group {group_id} exists already.", code="group_exists", present=present[group_id])
        _require_room()
        sequence, head = end_of_chain(group_entity(group_id))
        data = {
            "group_id": group_id,
            "parent_id": place,
            "name": wanted.name,
            "description": wanted.description,
            "state": wanted.state.value,
        }
        group, event = told(replace(new, version=sequence, audit_head=head), Draft("group.created", group_id, data), actor=actor, now=now)
        insert_group(group, parent=parent, by=actor.name, at=now, event=event)
        return group

    return mirrored(settled(attempt), entity=group_entity(group_id), now=now)


def rename_group(*, group_id: str, name: str, description: str, actor: Actor, now: datetime) -> Changed[Group]:
    """Give the group a name and a description. Its id stays, and so does every rule and membership."""
    new_name, new_description = clean_name(name), clean_description(description)

    def attempt() -> Group:
        group = group_named(group_id)
        require_group_right(GroupVerb.RENAME, group, actor=actor, now=now)
        if (group.name, group.description) == (new_name, new_description):
            raise Conflict(f"{group_id} has this name and description already.", code="group_unchanged", present=group)
        data = {
            "group_id": group_id,
            "name": new_name,
            "old_name": group.name,
            "description": new_description,
            "old_description": group.description,
        }
        wanted = replace(group, name=new_name, description=new_description)
        changed, event = told(wanted, Draft("group.renamed", group_id, data), actor=actor, now=now)
        change_group(changed, by=actor.name, at=now, event=event)
        return changed

    return mirrored(settled(attempt), entity=group_entity(group_id), now=now)


def set_group_state(*, group_id: str, state: State, actor: Actor, now: datetime) -> Changed[Group]:
    """Enable or disable the group. While it is disabled nobody is in it, and its memberships give nothing anywhere."""
    verb = GroupVerb.ENABLE if state is State.ENABLED else GroupVerb.DISABLE

    def attempt() -> Group:
        group = group_named(group_id)
        require_group_right(verb, group, actor=actor, now=now)
        if group.state is state:
            raise Conflict(f"{group_id} is {state.value} already.", code="group_state_unchanged", present=group)
        draft = Draft(f"group.{state.value}", group_id, {"group_id": group_id, "state": state.value})
        changed, event = told(replace(group, state=state), draft, actor=actor, now=now)
        change_group(changed, by=actor.name, at=now, event=event)
        return changed

    group = settled(attempt)
    if not group.is_enabled:
        ask_to_look()
    return mirrored(group, entity=group_entity(group_id), now=now)


def delete_group(*, group_id: str, actor: Actor, now: datetime) -> Changed[Group]:
    """Delete a group without members and groups below. Its chain of events stays, and a later group of the same path goes on with it."""

    def attempt() -> Group:
        group = group_named(group_id)
        require_group_right(GroupVerb.DELETE, group, actor=actor, now=now)
        if not group.is_empty:
            raise Conflict(f"{group_id} has {group.holds}. Remove them first.", code="group_not_empty", present=group)
        parent_id = group.ancestors[-1]
        data = {"group_id": group_id, "parent_id": parent_id, "name": group.name}
        gone, event = told(group, Draft("group.deleted", group_id, data), actor=actor, now=now)
        remove_group(gone, parent_exists=get_group(parent_id) is not None, at=now, event=event)
        return gone

    group = settled(attempt)
    ask_to_look()
    return mirrored(group, entity=group_entity(group_id), now=now)


def _require_room() -> None:
    count = count_groups()
    if count is not None and count >= MOST_GROUPS:
        raise Conflict(
            f"There are {count} groups, and Cognito has room for three roles of {MOST_GROUPS} at most. Delete one first.",
            code="too_many_groups",
        )
