"""The users and groups of an Amazon Cognito user pool: each call is sent once.

Errors are those of :mod:`accessportal.aws.errors`. A user's name is an address in lower case; names of users and groups have at
most 128 characters (https://docs.aws.amazon.com/cognito-user-identity-pools/latest/APIReference/API_AdminCreateUser.html).
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ParamSpec, TypeVar

from accessportal.aws.clients import cognito_client, patient_cognito_client
from accessportal.aws.errors import Gone, Refused, sorted_call
from accessportal.kernel.texts import fold_key

if TYPE_CHECKING:
    from mypy_boto3_cognito_idp.type_defs import AdminCreateUserRequestTypeDef, AttributeTypeTypeDef

P = ParamSpec("P")
R = TypeVar("R")

_PAGE = 60  # the service's largest page


@dataclass(frozen=True, slots=True)
class CognitoUser:
    """``name`` is the attribute of that name; empty when the user has none. ``is_federated``: the service made the user when
    somebody came from another identity provider, and named it ``<provider>_<their name there>``."""

    username: str
    is_enabled: bool
    name: str = ""
    is_federated: bool = False


def find_user_pool(name: str) -> str | None:
    """Find the id of the pool with this name. :raises Refused: when there are several: a name is not unique to the service."""
    found = [pool["Id"] for pool in _pages(cognito_client().list_user_pools, "UserPools") if pool["Name"] == name]
    if len(found) > 1:
        raise Refused("SeveralUserPools", f"There are {len(found)} user pools named {name!r}: {', '.join(sorted(found))}")
    return found[0] if found else None


def create_user_pool(name: str) -> str:
    """Make a pool whose users administrators alone make, named by their address, and return its id. That rules out the e-mail alias (such
    names are refused then) and ``UsernameAttributes`` (pools keep a name of their own)."""
    answer = sorted_call(
        cognito_client().create_user_pool,
        PoolName=name,
        AdminCreateUserConfig={"AllowAdminCreateUserOnly": True},
        UsernameConfiguration={"CaseSensitive": False},
        AutoVerifiedAttributes=["email"],
        DeletionProtection="ACTIVE",
    )
    return answer["UserPool"]["Id"]


def require_one_case(pool_id: str) -> None:
    """Refuse a pool that tells the case of user names apart: it holds two users of one person, and who disables one leaves the other. That
    can't be changed once a pool is made."""
    pool = _call(pool_id, cognito_client().describe_user_pool, UserPoolId=pool_id)["UserPool"]
    # Pools that say nothing about it are older than the setting, and tell it apart.
    if pool.get("UsernameConfiguration", {}).get("CaseSensitive", True):
        text = (
            f"The user pool {pool_id} tells upper and lower case in user names apart. Make another with create_user_pool, and set its id."
        )
        raise Refused("UserNamesCaseSensitive", text)


# Users


def get_user(pool_id: str, username: str) -> CognitoUser | None:
    """:raises Refused: when the pool found, by that name, a user that it calls otherwise."""
    try:
        answer = _call(pool_id, cognito_client().admin_get_user, UserPoolId=pool_id, Username=username)
    except Gone:
        return None
    _require_name_kept(pool_id, username, given=answer["Username"])
    return _user(answer["Username"], answer.get("UserAttributes", []), is_enabled=answer["Enabled"], status=answer.get("UserStatus"))


def create_user(pool_id: str, *, username: str, email: str, name: str, invites: bool) -> None:
    """Make the user, enabled. ``invites``: a new one is sent a temporary password, once; without it nobody knows one, and "Forgot password"
    does not help. :raises Refused: when the pool names users itself, or somebody from another provider has the name."""
    user: AdminCreateUserRequestTypeDef = {
        "UserPoolId": pool_id,
        "Username": username,
        "UserAttributes": [
            {"Name": "email", "Value": email},
            {"Name": "email_verified", "Value": "true"},
            {"Name": "name", "Value": name},
        ],
    }
    if invites:
        # The service's default is a short message to a telephone.
        user["DesiredDeliveryMediums"] = ["EMAIL"]
    else:
        user["MessageAction"] = "SUPPRESS"
    try:
        answer = _call(pool_id, cognito_client().admin_create_user, **user)
    except Refused as error:
        if error.code != "UsernameExistsException":
            raise
        present = get_user(pool_id, username)
        if present is not None and present.is_federated:
            text = (
                f"The user {username} of the pool {pool_id} belongs to somebody from another identity provider, not to the person of "
                "that address. Delete one of the two."
            )
            raise Refused("UserIsFederated", text) from error
        return
    _require_name_kept(pool_id, username, given=answer["User"]["Username"])


def rename_user(pool_id: str, *, username: str, name: str) -> None:
    """:raises Gone: when there is no such user."""
    attributes: list[AttributeTypeTypeDef] = [{"Name": "name", "Value": name}]
    _call(pool_id, cognito_client().admin_update_user_attributes, UserPoolId=pool_id, Username=username, UserAttributes=attributes)


def enable_user(pool_id: str, username: str) -> None:
    """:raises Gone: when there is no such user."""
    _call(pool_id, cognito_client().admin_enable_user, UserPoolId=pool_id, Username=username)


def disable_user(pool_id: str, username: str) -> None:
    """The user can't sign in, and their access tokens are revoked. Nobody of that name is as good."""
    _unless_gone(pool_id, cognito_client().admin_disable_user, UserPoolId=pool_id, Username=username)


def sign_out_user(pool_id: str, username: str) -> None:
    """No token that the user was given before is taken by Cognito any more. Nobody of that name is as good."""
    _unless_gone(pool_id, cognito_client().admin_user_global_sign_out, UserPoolId=pool_id, Username=username)


def delete_user(pool_id: str, username: str) -> None:
    """There is no user of that name, in the pool or in a group."""
    _unless_gone(pool_id, cognito_client().admin_delete_user, UserPoolId=pool_id, Username=username)


def list_users(pool_id: str) -> Iterator[CognitoUser]:
    """List every user. The service may lag a moment behind a change."""
    call = patient_cognito_client().list_users
    for user in _pages(call, "Users", paged_by=("PaginationToken", "Limit"), pool_id=pool_id, UserPoolId=pool_id):
        yield _user(user["Username"], user.get("Attributes", []), is_enabled=user["Enabled"], status=user.get("UserStatus"))


# Groups


def find_group(pool_id: str, name: str) -> bool:
    """Whether the group exists."""
    try:
        _call(pool_id, cognito_client().get_group, UserPoolId=pool_id, GroupName=name)
    except Gone:
        return False
    return True


def create_group(pool_id: str, *, name: str, description: str) -> None:
    """The group exists; one that did is left as it is."""
    try:
        _call(pool_id, cognito_client().create_group, UserPoolId=pool_id, GroupName=name, Description=description)
    except Refused as error:
        if error.code != "GroupExistsException":
            raise


def delete_group(pool_id: str, name: str) -> None:
    """There is no group of that name, and so nobody is in it."""
    _unless_gone(pool_id, cognito_client().delete_group, UserPoolId=pool_id, GroupName=name)


def list_groups(pool_id: str) -> Iterator[str]:
    """List the name of every group."""
    for group in _pages(
        patient_cognito_client().list_groups, "Groups", paged_by=("NextToken", "Limit"), pool_id=pool_id, UserPoolId=pool_id
    ):
        yield group["GroupName"]


# Who is in which group


def groups_of_user(pool_id: str, username: str) -> frozenset[str]:
    """Return the names of all groups that the user is in. :raises Gone: when there is no such user."""
    rows = _pages(
        cognito_client().admin_list_groups_for_user,
        "Groups",
        paged_by=("NextToken", "Limit"),
        pool_id=pool_id,
        UserPoolId=pool_id,
        Username=username,
    )
    return frozenset(row["GroupName"] for row in rows)


def add_to_group(pool_id: str, *, username: str, group: str) -> None:
    """Put the user into the group, again or for the first time. :raises Gone: when there is no such user (``UserNotFoundException``) or
    group (``ResourceNotFoundException``)."""
    _call(pool_id, cognito_client().admin_add_user_to_group, UserPoolId=pool_id, Username=username, GroupName=group)


def remove_from_group(pool_id: str, *, username: str, group: str) -> None:
    """The user is not in the group. That either of the two does not exist is as good."""
    _unless_gone(pool_id, cognito_client().admin_remove_user_from_group, UserPoolId=pool_id, Username=username, GroupName=group)


def list_users_in_group(pool_id: str, group: str) -> Iterator[str]:
    """List the name of every user in the group. :raises Gone: when there is no such group."""
    call = patient_cognito_client().list_users_in_group
    for user in _pages(call, "Users", paged_by=("NextToken", "Limit"), pool_id=pool_id, UserPoolId=pool_id, GroupName=group):
        yield user["Username"]


def _call(pool_id: str, function: Callable[P, R], /, *args: P.args, **kwargs: P.kwargs) -> R:
    """As ``sorted_call``; but a pool that does not exist must not look like a user or group that does not."""
    try:
        return sorted_call(function, *args, **kwargs)
    except Gone as error:
        # The service has one code for both, and tells them apart in words: "User pool eu-central-1_… does not exist."
        if error.message.startswith("User pool "):
            raise Refused("UserPoolNotFound", f"The user pool {pool_id} does not exist; PORTAL_USER_POOL_ID names it") from error
        raise


def _unless_gone(pool_id: str, function: Callable[P, object], /, *args: P.args, **kwargs: P.kwargs) -> None:
    try:
        _call(pool_id, function, *args, **kwargs)
    except Gone:
        return


def _pages(
    function: Callable[..., Any], rows: str, *, paged_by: tuple[str, str] = ("NextToken", "MaxResults"), pool_id: str = "", **kwargs: str
) -> Iterator[Any]:
    """Every row of every page. ``paged_by``: what the service calls its token and its size of a page here."""
    token, limit = paged_by
    after = ""
    while True:
        answer = _call(pool_id, function, **kwargs, **{limit: _PAGE}, **({token: after} if after else {}))
        yield from answer.get(rows, [])
        after = answer.get(token, "")
        if not after:
            return


def _require_name_kept(pool_id: str, username: str, *, given: str) -> None:
    """A pool with ``UsernameAttributes`` or an alias finds a user by the address, but lists it, and its groups, by another name."""
    # In a pool that tells no case apart, a user that somebody else made may be written otherwise, and is the same.
    if fold_key(given) != fold_key(username):
        text = f"The user pool {pool_id} named {username} {given!r}. Use one without UsernameAttributes and AliasAttributes."
        raise Refused("UserNamesNotKept", text)


def _user(username: str, attributes: Sequence[AttributeTypeTypeDef], *, is_enabled: bool, status: str | None) -> CognitoUser:
    values = {one["Name"]: one.get("Value", "") for one in attributes}
    is_federated = _is_federated(username, status, json.loads(values.get("identities") or "[]"))
    return CognitoUser(username, is_enabled, values.get("name", ""), is_federated)


def _is_federated(username: str, status: str | None, identities: Sequence[dict[str, Any]]) -> bool:
    """``identities``: the accounts elsewhere that sign in as this user."""
    if not identities:
        return status == "EXTERNAL_PROVIDER"
    # The status alone would not do. A user that was made for a person, and later linked to an account elsewhere, can have it too;
    # and one from elsewhere that was given a password loses it.
    return any(username.casefold().startswith(f"{one.get('providerName', '')}_".casefold()) for one in identities)
