"""The groups of the directory, as lists."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime

from accessportal.console.resource import Ask, Column, Parameter, Pattern, Resource, Row
from accessportal.directory import queries
from accessportal.directory.states import Group
from accessportal.kernel.actors import Actor
from accessportal.kernel.errors import NotFound
from accessportal.web.exporting import exported


class Groups(Resource):
    name = "groups"
    singular = "group"
    plural = "Groups"
    icon = "users"
    about = "The tree of groups: who is in which, who may change them, and whether Cognito knows."
    portal_page = "group"
    columns = (
        Column("Group", "console/cells/group_name.html", "col-who"),
        Column("Below", "console/cells/group_place.html", "col-context"),
        Column("Holds", "console/cells/group_counts.html", "col-what"),
        Column("State", "console/cells/group_state.html", "col-state"),
    )
    file_columns = exported("group_id", "name", "description", "state", "parent_id", "member_count", "child_count", "created_at")
    patterns = (
        Pattern(
            name="all",
            label="All groups",
            fetch=lambda ask: queries.list_groups(**ask.part),
            empty_title="There are no groups",
            empty_hint="Found the directory first: manage.py found_directory",
        ),
        Pattern(
            name="under",
            label="Below a group",
            fetch=lambda ask: queries.list_groups(under=ask.parameter, **ask.part),
            parameter=Parameter("The group above", "/engineering"),
            empty_title="Nothing is below this group",
            empty_hint="Check the path; groups are listed where they stand in the tree, wherever their paths would put them.",
        ),
    )

    def read(self, key: str, actor: Actor, now: datetime) -> Group:
        found = queries.find_group(group_id=key)
        if found is None:
            raise NotFound("There is no group with this path.", code="group_not_found")
        return found

    def title(self, record: Group) -> str:
        return record.name or record.group_id

    def rows(self, items: Sequence[Group], ask: Ask) -> list[Row]:
        return [Row(group.group_id, group) for group in items]
