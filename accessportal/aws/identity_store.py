"""The users and groups of the Identity Store."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from accessportal.aws.clients import identity_store_client, principal_client
from accessportal.aws.errors import Gone, sorted_call

if TYPE_CHECKING:
    from mypy_boto3_identitystore.type_defs import UserTypeDef


@dataclass(frozen=True, slots=True)
class StoreUser:
    """``email`` is the primary address, else the first one, else the user name."""

    user_id: str
    email: str


@dataclass(frozen=True, slots=True)
class StoreGroup:
    group_id: str
    display_name: str


def read_users(identity_store_id: str) -> list[StoreUser]:
    """Read every user of the store, to the last page."""
    pages = sorted_call(list, identity_store_client().get_paginator("list_users").paginate(IdentityStoreId=identity_store_id))
    return [StoreUser(user["UserId"], _address(user)) for page in pages for user in page["Users"]]


def read_groups(identity_store_id: str) -> list[StoreGroup]:
    """Read every group of the store, to the last page."""
    pages = sorted_call(list, identity_store_client().get_paginator("list_groups").paginate(IdentityStoreId=identity_store_id))
    return [StoreGroup(group["GroupId"], group.get("DisplayName", "")) for page in pages for group in page["Groups"]]


def has_principal(identity_store_id: str, *, principal_type: str, principal_id: str) -> bool:
    """Say whether the ``USER`` or ``GROUP`` of this id exists."""
    client = principal_client()
    try:
        if principal_type == "USER":
            sorted_call(client.describe_user, IdentityStoreId=identity_store_id, UserId=principal_id)
        else:
            sorted_call(client.describe_group, IdentityStoreId=identity_store_id, GroupId=principal_id)
    except Gone:
        return False
    return True


def _address(user: UserTypeDef) -> str:
    emails = user.get("Emails") or []
    chosen = next((email for email in emails if email.get("Primary")), emails[0] if emails else None)
    return (chosen or {}).get("Value") or user.get("UserName", "")
