"""Makes the demo's cloud with plain AWS calls, so that it can be made in the twin or in any empty organization."""

from __future__ import annotations

import itertools
import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol

import boto3
from botocore.config import Config
from botocore.exceptions import ClientError

from accessportal.twin.world_plan import Neighbour, PlannedAccount, PlannedPermissionSet, neighbours, plan_accounts, plan_permission_sets

if TYPE_CHECKING:
    from mypy_boto3_identitystore import IdentityStoreClient
    from mypy_boto3_organizations import OrganizationsClient
    from mypy_boto3_sso_admin import SSOAdminClient

# Identity Center throttles above 20 calls a second: botocore then slows down by itself.
_PATIENT = Config(retries={"total_max_attempts": 20, "mode": "adaptive"}, connect_timeout=3, read_timeout=30)

_LENT_UNIT = "/Lent"
_CLEANER = "clean-account"

Progress = Callable[[str, int, int], None]
"""Told of each thing that is there now: what, how many of them, of how many."""


class Resident(Protocol):
    """Somebody of the demo: ``group`` is the path of their group, or empty."""

    @property
    def email(self) -> str: ...
    @property
    def name(self) -> str: ...
    @property
    def group(self) -> str: ...


@dataclass(frozen=True, slots=True)
class Seeded:
    """What this call has made; all noughts when everything was there already."""

    organizational_units: int
    accounts: int
    permission_sets: int
    users: int
    groups: int
    memberships: int


def seed_world(
    *, accounts: int = 60, permission_sets: int = 12, people: Sequence[Resident] = (), progress: Progress | None = None
) -> Seeded:
    """Make what is missing of the demo's cloud: a tree of tagged accounts, permission sets, ``people`` and some twenty more, and groups
    named by path. It may be repeated, with more of everything; what exists under a wanted name is left as it is."""
    tell = progress or _silent
    units, made_accounts = _seed_organization(client_of("organizations"), plan_accounts(accounts), tell)
    sso: SSOAdminClient = client_of("sso-admin")
    instance = sso.list_instances()["Instances"][0]
    made_sets = _seed_permission_sets(sso, instance["InstanceArn"], plan_permission_sets(permission_sets), tell)
    everybody: list[Resident | Neighbour] = [*people, *neighbours()]
    users, groups, memberships = _seed_people(client_of("identitystore"), instance["IdentityStoreId"], everybody, tell)
    return Seeded(units, made_accounts, made_sets, users, groups, memberships)


@dataclass(frozen=True, slots=True)
class Lent:
    """Accounts that are lent, by name, the organizational unit that they are in, and the state machine that cleans them."""

    accounts: Mapping[str, str]
    unit_id: str
    machine_arn: str


def seed_lent(names: Sequence[str]) -> Lent:
    """Make what is missing of some accounts of their own unit, and of the machine; repeated, it changes nothing."""
    organizations = client_of("organizations")
    planned = [PlannedAccount(name, _LENT_UNIT, {"env": "lab", "team": "platform"}) for name in names]
    _seed_organization(organizations, planned, _silent)
    units = _existing_units(organizations, organizations.list_roots()["Roots"][0]["Id"])
    found = {one["Name"]: one["Id"] for one in pages_of(organizations, "list_accounts_for_parent", "Accounts", ParentId=units[_LENT_UNIT])}
    return Lent({name: found[name] for name in names}, units[_LENT_UNIT], _ensure_machine(client_of("stepfunctions")))


def seed_evidence(*, bucket: str = "", key_alias: str = "") -> None:
    """Make what is missing of a bucket with object lock and of a key that signs, by their names, where they have any."""
    s3: Any = client_of("s3")
    if bucket and bucket not in {one["Name"] for one in s3.list_buckets()["Buckets"]}:
        place = {"LocationConstraint": s3.meta.region_name}
        s3.create_bucket(Bucket=bucket, ObjectLockEnabledForBucket=True, CreateBucketConfiguration=place)
    kms: Any = client_of("kms")
    if key_alias.startswith("alias/") and key_alias not in {one["AliasName"] for one in pages_of(kms, "list_aliases", "Aliases")}:
        made = kms.create_key(KeySpec="ECC_NIST_P256", KeyUsage="SIGN_VERIFY", Description="Signs the demo's evidence")
        kms.create_alias(AliasName=key_alias, TargetKeyId=made["KeyMetadata"]["KeyId"])


def _ensure_machine(client: Any) -> str:
    """No machine is run in the twin: it answers as one that cleans."""
    present: dict[str, str] = {one["name"]: one["stateMachineArn"] for one in pages_of(client, "list_state_machines", "stateMachines")}
    if _CLEANER in present:
        return present[_CLEANER]
    definition = json.dumps({"StartAt": "Clean", "States": {"Clean": {"Type": "Pass", "End": True}}})
    role = "arn:aws:iam::123456789012:role/account-cleaner"
    made: str = client.create_state_machine(name=_CLEANER, definition=definition, roleArn=role)["stateMachineArn"]
    return made


def _seed_organization(organizations: OrganizationsClient, planned: Sequence[PlannedAccount], tell: Progress) -> tuple[int, int]:
    _ensure_organization(organizations)
    root = organizations.list_roots()["Roots"][0]["Id"]
    units = _existing_units(organizations, root)
    existing_units = len(units)
    existing = {account["Name"]: account["Id"] for account in pages_of(organizations, "list_accounts", "Accounts")}
    at_root = {account["Id"] for account in pages_of(organizations, "list_accounts_for_parent", "Accounts", ParentId=root)}
    made = 0
    for number, one in enumerate(planned, start=1):
        unit = _ensure_unit(organizations, units, one.path)
        if one.name not in existing:
            existing[one.name] = _create_account(organizations, one)
            at_root.add(existing[one.name])
            made += 1
        # A run that was cut off may have left an account where AWS makes it.
        if existing[one.name] in at_root:
            organizations.move_account(AccountId=existing[one.name], SourceParentId=root, DestinationParentId=unit)
        tell("accounts", number, len(planned))
    return len(units) - existing_units, made


def _ensure_organization(organizations: OrganizationsClient) -> None:
    try:
        organizations.describe_organization()
    except ClientError as error:
        if error.response["Error"]["Code"] != "AWSOrganizationsNotInUseException":
            raise
        organizations.create_organization(FeatureSet="ALL")


def _existing_units(organizations: OrganizationsClient, root: str) -> dict[str, str]:
    """Ids of organizational units by path."""
    units = {"": root}
    waiting = [""]
    while waiting:
        path = waiting.pop()
        for unit in pages_of(organizations, "list_organizational_units_for_parent", "OrganizationalUnits", ParentId=units[path]):
            units[f"{path}/{unit['Name']}"] = unit["Id"]
            waiting.append(f"{path}/{unit['Name']}")
    return units


def _ensure_unit(organizations: OrganizationsClient, units: dict[str, str], path: str) -> str:
    if path not in units:
        parent, _, name = path.rpartition("/")
        parent_id = _ensure_unit(organizations, units, parent)
        units[path] = organizations.create_organizational_unit(ParentId=parent_id, Name=name)["OrganizationalUnit"]["Id"]
    return units[path]


def _create_account(organizations: OrganizationsClient, one: PlannedAccount) -> str:
    tags = [{"Key": key, "Value": value} for key, value in one.tags.items()]
    made = organizations.create_account(AccountName=one.name, Email=f"aws+{one.name}@example.com", Tags=tags)  # type: ignore[arg-type]
    return made["CreateAccountStatus"]["AccountId"]


def _seed_permission_sets(sso: SSOAdminClient, instance_arn: str, planned: Sequence[PlannedPermissionSet], tell: Progress) -> int:
    existing = permission_sets_of(sso, instance_arn)
    made = 0
    for number, one in enumerate(planned, start=1):
        if one.name not in existing:
            sso.create_permission_set(InstanceArn=instance_arn, Name=one.name, Description=one.description, SessionDuration=one.session)
            made += 1
        tell("permission sets", number, len(planned))
    return made


def permission_sets_of(sso: SSOAdminClient, instance_arn: str) -> dict[str, str]:
    """Return their ARNs by name."""
    arns = pages_of(sso, "list_permission_sets", "PermissionSets", InstanceArn=instance_arn)
    described = (sso.describe_permission_set(InstanceArn=instance_arn, PermissionSetArn=arn)["PermissionSet"] for arn in arns)
    return {one["Name"]: one["PermissionSetArn"] for one in described}


def _seed_people(store: IdentityStoreClient, store_id: str, people: Sequence[Resident | Neighbour], tell: Progress) -> tuple[int, int, int]:
    users = {user["UserName"]: user["UserId"] for user in pages_of(store, "list_users", "Users", IdentityStoreId=store_id)}
    groups = {group["DisplayName"]: group["GroupId"] for group in pages_of(store, "list_groups", "Groups", IdentityStoreId=store_id)}
    before = (len(users), len(groups))
    for path in _paths(one.group for one in people):
        if path not in groups:
            groups[path] = store.create_group(IdentityStoreId=store_id, DisplayName=path, Description=f"Members of {path}")["GroupId"]
    members = _memberships(store, store_id, groups)
    made = 0
    for number, one in enumerate(people, start=1):
        if one.email not in users:
            users[one.email] = _create_user(store, store_id, one)
        if one.group and (groups[one.group], users[one.email]) not in members:
            store.create_group_membership(IdentityStoreId=store_id, GroupId=groups[one.group], MemberId={"UserId": users[one.email]})
            made += 1
        tell("people", number, len(people))
    return len(users) - before[0], len(groups) - before[1], made


def _paths(groups: Iterable[str]) -> list[str]:
    """Every group and those above it, parents first."""
    parts = {tuple(group.strip("/").split("/")) for group in groups if group}
    return sorted({"/" + "/".join(part[:depth]) for part in parts for depth in range(1, len(part) + 1)})


def _memberships(store: IdentityStoreClient, store_id: str, groups: Mapping[str, str]) -> set[tuple[str, str]]:
    pages = (
        pages_of(store, "list_group_memberships", "GroupMemberships", IdentityStoreId=store_id, GroupId=one) for one in groups.values()
    )
    return {(row["GroupId"], row["MemberId"]["UserId"]) for row in itertools.chain.from_iterable(pages)}


def _create_user(store: IdentityStoreClient, store_id: str, one: Resident | Neighbour) -> str:
    given, _, family = one.name.partition(" ")
    return store.create_user(
        IdentityStoreId=store_id,
        UserName=one.email,
        DisplayName=one.name,
        Name={"GivenName": given, "FamilyName": family or given},
        Emails=[{"Value": one.email, "Type": "work", "Primary": True}],
    )["UserId"]


def pages_of(client: Any, operation: str, name: str, **parameters: Any) -> Iterator[Any]:
    """Yield what all pages of a list hold."""
    for page in client.get_paginator(operation).paginate(**parameters):
        yield from page[name]


def client_of(service: str) -> Any:
    """Return a plain client of the service."""
    return boto3.session.Session().client(service, config=_PATIENT)  # type: ignore[call-overload]


def _silent(_what: str, _done: int, _of: int) -> None:
    return None
