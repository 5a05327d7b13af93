"""What the form for a membership asks, and what its pages say."""

from __future__ import annotations

from accessportal.access_requests.kind import Field, Fields
from accessportal.access_requests.kinds.group.terms import MembershipAsked
from accessportal.access_requests.offers import Choice, Offers, Seeker, sift_places
from accessportal.directory import queries as directory
from accessportal.directory.states import Group, GroupRole

_MOST_GROUPS = 5_000


def _groups(text: str, seeker: Seeker) -> Offers:
    def ask(group: Group, role: str) -> MembershipAsked:
        return MembershipAsked(group.group_id, group.name, frozenset((*group.ancestors, group.group_id)), role)

    def show(group: Group) -> Choice:
        return Choice(group.group_id, group.name, group.group_id, group.description)

    found = [group for group in directory.search_groups(text=text, limit=_MOST_GROUPS) if group.is_enabled]
    return sift_places(found, seeker, ask, show)


_ROLES = tuple((role.value, role.value.capitalize()) for role in sorted(GroupRole, key=lambda role: role.rank))

FIELDS = Fields(
    name="Group",
    about="Membership in a group with a role, for hours to days. It counts for everything that stands on the group.",
    icon="users",
    heading="Ask to join a group",
    target=(
        Field(
            name="group",
            label="Group",
            missing="Choose a group, or type its id.",
            placeholder="Name or id",
            search=_groups,
            about="the group, like /engineering/payments",
            metavar="PATH",
        ),
        Field(
            name="role",
            label="Role",
            missing="Choose a role.",
            choices=lambda actor, book, now: _ROLES,
            is_radio=True,
            wrong="Choose one of the roles reader, contributor and admin.",
            about="reader, contributor or admin",
            metavar="ROLE",
        ),
    ),
    hint="Choose a group and a role to see who decides, and how long it may last.",
    lengths=("1h", "8h", "1d", "5d"),
    usual="8h",
    place="the directory",
    thing="membership",
    giver="an admin",
)
