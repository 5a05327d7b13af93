"""What the form for an AWS account asks, and what its pages say."""

from __future__ import annotations

from accessportal.access_requests.kind import Field, Fields

FIELDS = Fields(
    name="AWS account",
    about="A permission set in one account, for minutes to days, through IAM Identity Center.",
    icon="cloud",
    heading="Request access to an AWS account",
    target=(
        Field(
            name="account",
            label="Account",
            missing="Choose an account, or type its name or 12-digit id.",
            placeholder="Name, id, path or tag",
            search="search_accounts",
            about="the account, by 12-digit id or by name",
            metavar="ID",
        ),
        Field(
            name="permission_set",
            label="Permission set",
            missing="Choose a permission set.",
            placeholder="For example ReadOnlyAccess",
            search="search_permission_sets",
            about="the permission set",
            metavar="NAME",
        ),
    ),
    has_subject=True,
    hint="Choose an account and a permission set to see who decides, and how long it may last.",
    lengths=("30m", "1h", "4h", "8h"),
    usual="1h",
    place="IAM Identity Center",
)
