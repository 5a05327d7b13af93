from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Any

from django.core.management.base import CommandParser
from rich.console import Console

from accessportal.commands.base import Document, Outcome, PortalCommand, plain
from accessportal.commands.directory import group_document, group_named, membership_document, show_facts, show_reach, show_table
from accessportal.directory import queries
from accessportal.directory.states import Group, GroupVerb
from accessportal.kernel.actors import Actor
from accessportal.kernel.clock import SystemClock
from accessportal.kernel.counts import counted
from accessportal.kernel.pages import every
from accessportal.rules import queries as rules


class Command(PortalCommand):
    help = "Show a group: its place, the groups right below, and its members to those who may see them."
    example = "show_group /engineering/payments --as alice@example.com"
    takes_actor = True

    def add_arguments(self, parser: CommandParser) -> None:
        super().add_arguments(parser)
        parser.add_argument("group_id", metavar="ID", help="the group's path")

    def run(self, options: Mapping[str, Any]) -> Outcome:
        actor, now = self.actor(options), SystemClock().now()
        group = group_named(options["group_id"])
        children = queries.list_child_groups(group_id=group.group_id)
        document = group_document(group) | {"children": [group_document(child) for child in children]}
        document["reach"] = plain(rules.reach_of(group_id=group.group_id, groups_above=group.ancestors))
        return Outcome(document | _members(group, actor, now) | {"mirror": plain(queries.mirror_state_of(entity=group.entity))})

    def show(self, document: Document, console: Console) -> None:
        show_facts(document, console, "group_id", "name", "description", "state", "ancestors")
        if document["mirror"]:
            console.print("Cognito has not followed the latest change yet.")
        show_reach(document, console)
        console.print(counted(len(document["children"]), "group right below", "groups right below"))
        if document["children"]:
            show_table(console, document["children"], "group_id", "name", "state", "member_count", "child_count")
        if document["members"] is None:
            console.print(document["members_hidden"], soft_wrap=True)
            return
        console.print(counted(len(document["members"]), "member", "members"))
        if document["members"]:
            show_table(console, document["members"], "email", "role", "ends_at")


def _members(group: Group, actor: Actor, now: datetime) -> dict[str, Any]:
    """The members; ``null`` with the reason for those who may not see them."""
    decision = queries.may(verb=GroupVerb.SEE_MEMBERS, group=group, actor=actor, now=now)
    if not decision.allowed:
        return {"members": None, "members_hidden": decision.reason}
    members = every(lambda cursor: queries.list_members(group_id=group.group_id, cursor=cursor, actor=actor, now=now))
    return {"members": [membership_document(membership, now) for membership in members]}
