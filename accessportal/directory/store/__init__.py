"""The only users of the AccessManagement item class: people, groups and memberships in and out, as records."""

from __future__ import annotations

from accessportal.directory.store.groups import (
    MOST_GROUPS,
    change_group,
    insert_group,
    insert_root,
    move_group,
    place_groups,
    remove_group,
)
from accessportal.directory.store.people import MOST_ADMINS, MembershipChange, PersonChange, write_person
from accessportal.directory.store.reading import (
    count_groups,
    every_group,
    every_member,
    get_group,
    get_groups,
    get_membership,
    get_memberships,
    get_people,
    get_person,
    get_person_with_memberships,
    list_branches,
    list_children,
    list_placeless,
    page_of_groups,
    page_of_groups_below,
    page_of_members,
    page_of_people,
)

__all__ = [
    "MOST_ADMINS",
    "MOST_GROUPS",
    "MembershipChange",
    "PersonChange",
    "change_group",
    "count_groups",
    "every_group",
    "every_member",
    "get_group",
    "get_groups",
    "get_membership",
    "get_memberships",
    "get_people",
    "get_person",
    "get_person_with_memberships",
    "insert_group",
    "insert_root",
    "list_branches",
    "list_children",
    "list_placeless",
    "move_group",
    "page_of_groups",
    "page_of_groups_below",
    "page_of_members",
    "page_of_people",
    "place_groups",
    "remove_group",
    "write_person",
]
