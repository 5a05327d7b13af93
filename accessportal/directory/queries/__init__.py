"""Reading the directory. Everything that a decision may stand on is strongly read."""

from accessportal.directory.policy.words import clean_email
from accessportal.directory.queries.book import Book, Named
from accessportal.directory.queries.explaining import explain_person
from accessportal.directory.queries.lists import (
    find_group,
    find_groups,
    find_lasting_role,
    find_membership,
    find_owner,
    find_people,
    find_person,
    list_child_groups,
    list_disabled,
    list_groups,
    list_members,
    list_people,
    put_into,
    role_by_requests,
    search_groups,
    tree,
)
from accessportal.directory.queries.looking_up import look_up_people
from accessportal.directory.queries.rights import get_person_for, may, may_with_people, verbs_on
from accessportal.directory.queries.roles import (
    find_person_with_ends,
    find_person_with_groups,
    groups_of,
    role_on,
    roles_of,
)
from accessportal.directory.store.departures import list_departures
from accessportal.directory.store.whole import every_record, find_holding

__all__ = [
    "Book",
    "Named",
    "clean_email",
    "every_record",
    "explain_person",
    "find_group",
    "find_groups",
    "find_holding",
    "find_lasting_role",
    "find_membership",
    "find_owner",
    "find_people",
    "find_person",
    "find_person_with_ends",
    "find_person_with_groups",
    "get_person_for",
    "groups_of",
    "list_child_groups",
    "list_departures",
    "list_disabled",
    "list_groups",
    "list_members",
    "list_people",
    "look_up_people",
    "may",
    "may_with_people",
    "put_into",
    "role_by_requests",
    "role_on",
    "roles_of",
    "search_groups",
    "tree",
    "verbs_on",
]
