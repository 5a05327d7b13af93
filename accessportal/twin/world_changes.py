"""What happens in the demo's cloud besides what the portal does, with plain AWS calls; and a twin that hurries while a past is made up."""

from __future__ import annotations

import json
import urllib.request
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from accessportal.twin.world import client_of, pages_of, permission_sets_of

if TYPE_CHECKING:
    from mypy_boto3_identitystore import IdentityStoreClient
    from mypy_boto3_sso_admin import SSOAdminClient

_CALL_SECONDS = 30
_HURRIED = {"job_seconds": 0.0, "calls_per_second": 0}


def close_account(name: str) -> None:
    """Close the account: what people have in it stays, and can't be changed."""
    client_of("organizations").close_account(AccountId=_account_id(name))


def change_by_hand(*, email: str, account: str, permission_set: str, is_wanted: bool) -> None:
    """Assign the permission set to the person in the account, or take it away, as somebody does at the console of AWS."""
    sso: SSOAdminClient = client_of("sso-admin")
    store: IdentityStoreClient = client_of("identitystore")
    instance = sso.list_instances()["Instances"][0]
    people = pages_of(store, "list_users", "Users", IdentityStoreId=instance["IdentityStoreId"])
    change = sso.create_account_assignment if is_wanted else sso.delete_account_assignment
    change(
        InstanceArn=instance["InstanceArn"],
        TargetId=_account_id(account),
        TargetType="AWS_ACCOUNT",
        PermissionSetArn=permission_sets_of(sso, instance["InstanceArn"])[permission_set],
        PrincipalType="USER",
        PrincipalId=next(one["UserId"] for one in people if one["UserName"] == email),
    )


@contextmanager
def hurried(url: str) -> Iterator[None]:
    """While this lasts, jobs of Identity Center at the twin with this address end at once, and it takes any number of calls a second."""
    former = _settings(url)
    _settings(url, _HURRIED)
    try:
        yield
    finally:
        _settings(url, {name: former[name] for name in _HURRIED})


def _account_id(name: str) -> str:
    accounts = pages_of(client_of("organizations"), "list_accounts", "Accounts")
    return next(str(one["Id"]) for one in accounts if one["Name"] == name)


def _settings(url: str, values: Mapping[str, float] | None = None) -> dict[str, Any]:
    """What they are afterwards."""
    asked = urllib.request.Request(f"{url}/twin/settings", data=None if values is None else json.dumps(values).encode())  # noqa: S310
    with urllib.request.urlopen(asked, timeout=_CALL_SECONDS) as answer:  # noqa: S310  (an address of this machine)
        told: dict[str, Any] = json.load(answer)
        return told
