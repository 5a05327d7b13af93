"""What the form for a membership asks, and what its pages say."""

from __future__ import annotations

from accessportal.access_requests.kind import Field, Fields
from accessportal.directory.states import GroupRole

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
            search="search_groups",
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
