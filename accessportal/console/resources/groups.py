"""The groups of the directory: the tree, who is in a group and why, who may change it, and whether Cognito knows."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from functools import partial
from typing import Any

from accessportal.access_requests.queries import ACCESS_OF_GROUP_ENDS
from accessportal.audit import queries as audit
from accessportal.console.resource import Ask, Column, Operation, Parameter, Pattern, Resource, Right, Row, Section
from accessportal.directory import operations, queries
from accessportal.directory.states import Group, GroupVerb, State
from accessportal.kernel.actors import Actor
from accessportal.kernel.decisions import Decision, refuse
from accessportal.kernel.errors import NotFound
from accessportal.kernel.pages import Page, Unreadable
from accessportal.mirror import queries as mirror

_EVENTS = 20
_MEMBERS_SHOWN = 100
# Refusals that tell of the group's state and not of the actor.
_STALE = frozenset({"group_state_unchanged", "group_not_empty"})


def _all(ask: Ask) -> Page[Group]:
    return queries.list_groups(cursor=ask.cursor, limit=ask.limit)


def _under(ask: Ask) -> Page[Group]:
    return queries.list_groups(under=ask.parameter, cursor=ask.cursor, limit=ask.limit)


def _state_refusal(verb: GroupVerb, group: Group) -> Decision | None:
    """What the group's own state rules out, whoever asks."""
    unchanged = {GroupVerb.ENABLE: group.is_enabled, GroupVerb.DISABLE: not group.is_enabled}
    if unchanged.get(verb, False):
        return refuse(f"{group.group_id} is {group.state.value} already.", code="group_state_unchanged")
    if verb is GroupVerb.DELETE and (group.member_count or group.child_count):
        return refuse(f"{group.group_id} has {group.holds}. Remove them first.", code="group_not_empty")
    return None


def _offered(verb: GroupVerb, group: Group, actor: Actor, now: datetime) -> Decision:
    return _state_refusal(verb, group) or queries.may(verb=verb, group=group, actor=actor, now=now)


def _set_state(state: State, group: Group, _reason: str, actor: Actor, now: datetime) -> str:
    changed = operations.set_group_state(group_id=group.group_id, state=state, actor=actor, now=now)
    words = f"{group.group_id} is {state.value}"
    return changed.mirror.told(done=f"{words} now.", pending=f"{words} here.")


def _delete(group: Group, _reason: str, actor: Actor, now: datetime) -> str:
    changed = operations.delete_group(group_id=group.group_id, actor=actor, now=now)
    return changed.mirror.told(done=f"{group.group_id} was deleted.", pending=f"{group.group_id} is being deleted.")


class Groups(Resource):
    name = "groups"
    singular = "group"
    plural = "Groups"
    icon = "users"
    about = "The tree of groups: who is in which, who may change them, and whether Cognito knows."
    right = Right.READERS
    headline_template = "console/groups/headline.html"
    columns = (
        Column("Group", "console/cells/group_name.html", "col-who"),
        Column("Below", "console/cells/group_place.html", "col-context"),
        Column("Holds", "console/cells/group_counts.html", "col-what"),
        Column("State", "console/cells/group_state.html", "col-state"),
    )
    patterns = (
        Pattern(
            name="all",
            label="All groups",
            fetch=_all,
            empty_title="There are no groups",
            empty_hint="Found the directory first: manage.py found_directory",
        ),
        Pattern(
            name="under",
            label="Below a group",
            fetch=_under,
            parameter=Parameter("The group above", "/engineering"),
            empty_title="Nothing is below this group",
            empty_hint="Check the path; groups are listed where they stand in the tree, wherever their paths would put them.",
        ),
    )
    sections = (
        Section("Members", "console/groups/members.html"),
        Section("Right below", "console/groups/children.html"),
        Section("What happened", "console/people/story.html"),
        Section("Facts", "console/groups/facts.html", is_aside=True),
        Section("Admins", "console/groups/admins.html", is_aside=True),
        Section("Cognito", "console/people/mirror.html", is_aside=True),
    )
    operations = (
        Operation(
            name="disable",
            label="Disable",
            offered=partial(_offered, GroupVerb.DISABLE),
            stale_codes=_STALE,
            run=partial(_set_state, State.DISABLED),
            will=lambda group: (
                f"Nobody is in {group.group_id} from then on, and its memberships give nothing, there and below. "
                f"Groups below stay as they are, and the memberships count again when it is enabled. {ACCESS_OF_GROUP_ENDS}"
            ),
            is_danger=True,
        ),
        Operation(
            name="enable",
            label="Enable",
            offered=partial(_offered, GroupVerb.ENABLE),
            stale_codes=_STALE,
            run=partial(_set_state, State.ENABLED),
            will=lambda group: f"The memberships of {group.group_id} count again.",
        ),
        Operation(
            name="delete",
            label="Delete",
            offered=partial(_offered, GroupVerb.DELETE),
            stale_codes=_STALE,
            run=_delete,
            will=lambda group: f"Deletes {group.group_id}, here and in Cognito. The history stays.",
            is_danger=True,
            ends_record=True,
        ),
    )

    def load(self, key: str, actor: Actor, now: datetime) -> Group:
        self.right.require(actor)
        found = queries.find_group(group_id=key)
        if found is None:
            raise NotFound("There is no group with this path.", code="group_not_found")
        return found

    def title(self, record: Group) -> str:
        return record.name or record.group_id

    def entity(self, record: Group) -> str:
        return record.entity

    def head(self, record: Group) -> tuple[int, str]:
        return record.version, record.audit_head

    def offers(self, record: Group, ask: Ask) -> list[Operation]:
        """One look-up of the actor's role answers for all verbs."""
        verbs = queries.verbs_on(group=record, actor=ask.actor, now=ask.now)
        by_name = {operation.name: operation for operation in self.operations}
        offered = [GroupVerb(name) for name in by_name if verbs[GroupVerb(name)].allowed]
        return [by_name[verb.value] for verb in offered if _state_refusal(verb, record) is None]

    def rows(self, items: Sequence[Group], ask: Ask) -> list[Row]:
        return [Row(group.group_id, group) for group in items]

    def details(self, record: Group, ask: Ask) -> dict[str, Any]:
        unreadable: list[Unreadable] = []
        members = queries.list_members(group_id=record.group_id, limit=_MEMBERS_SHOWN, actor=ask.actor, now=ask.now)
        return {
            "members": [(one, one.role_at(ask.now), one.ends_at(ask.now)) for one in members.items],
            "has_more_members": members.next_cursor is not None,
            "children": queries.list_child_groups(group_id=record.group_id, past=unreadable.append),
            "unreadable": [*members.unreadable, *unreadable],
            "admins": queries.admins_of(group_id=record.group_id, now=ask.now).people,
            "work": mirror.find_pending(record.entity),
            "events": audit.history(record.entity, limit=_EVENTS).items,
            "breaks": audit.check_head(record.entity, version=record.version, audit_head=record.audit_head),
        }
