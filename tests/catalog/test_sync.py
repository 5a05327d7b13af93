"""The sync against the twin: all or nothing, page by page, at the common pace."""

from __future__ import annotations

from typing import Any
from unittest import mock

import pytest
from botocore.exceptions import EndpointConnectionError

from accessportal.catalog import operations, queries
from accessportal.catalog.models import AccountRow, PermissionSetRow, SyncRun
from accessportal.catalog.states import Freshness
from accessportal.kernel.errors import Conflict, Unavailable
from tests.conftest import FakeClock
from tests.fixtures_twin import ACCOUNTS, PEOPLE, PERMISSION_SETS, Twin, create_user, refuse, when

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("tables")]


def _sync(clock: FakeClock) -> Freshness:
    return operations.sync_catalog(now=clock.now(), clock=clock)


def _no_answer(parameters: dict[str, Any]) -> Any:
    raise EndpointConnectionError(endpoint_url="http://aws")


def test_everything_is_read(twin: Twin, clock: FakeClock) -> None:
    fresh = _sync(clock)
    assert (fresh.accounts, fresh.permission_sets, fresh.principals) == (len(ACCOUNTS) + 1, len(PERMISSION_SETS), len(PEOPLE) + 1)
    assert (fresh.instance_arn, fresh.identity_store_id, fresh.last_error) == (twin.instance_arn, twin.identity_store_id, "")
    assert fresh.synced_at == clock.now()
    assert queries.freshness() == fresh
    prod = queries.get_account(account="payments-prod")
    assert (prod.account_id, prod.ou_path, prod.status) == (twin.accounts["payments-prod"], "/Workloads/Prod/Payments", "ACTIVE")
    assert prod.tags == {"env": "prod", "team": "payments"}
    assert [one.account_id for one in queries.list_accounts().items if one.is_management] == [twin.accounts["management"]]
    read_only = queries.find_permission_set(name="ReadOnlyAccess")
    assert read_only is not None
    assert (read_only.arn, read_only.session_seconds) == (twin.permission_sets["ReadOnlyAccess"], 8 * 3600)
    alice = queries.find_user_principal(email="Alice@example.com")
    assert alice is not None
    assert alice.principal_id == twin.users["alice@example.com"]
    assert queries.find_group_principal(group_id="/engineering/payments") is not None


def test_every_page_is_read(twin: Twin, clock: FakeClock) -> None:
    root = twin.organizational_units["/"]
    for number in range(45):
        twin.organizations.create_account(AccountName=f"account{number}", Email=f"account{number}@example.com")
        twin.organizations.create_organizational_unit(ParentId=root, Name=f"Unit{number}")
        twin.identity_store.create_user(
            IdentityStoreId=twin.identity_store_id,
            UserName=f"u{number}@example.com",
            DisplayName="U",
            Name={"GivenName": "U", "FamilyName": "U"},
        )
    for number in range(120):
        twin.sso.create_permission_set(InstanceArn=twin.instance_arn, Name=f"Set{number}")
    fresh = _sync(clock)
    assert fresh.accounts == len(ACCOUNTS) + 46
    assert fresh.permission_sets == len(PERMISSION_SETS) + 120
    assert fresh.principals == len(PEOPLE) + 46
    assert queries.find_permission_set(name="Set119").session_seconds == 3600  # type: ignore[union-attr]
    assert queries.find_user_principal(email="u44@example.com") is not None


def test_a_second_sync_follows_the_cloud(twin: Twin, clock: FakeClock) -> None:
    _sync(clock)
    twin.sso.delete_permission_set(InstanceArn=twin.instance_arn, PermissionSetArn=twin.permission_sets["PowerUserAccess"])
    twin.organizations.close_account(AccountId=twin.accounts["payments-dev"])
    twin.organizations.move_account(
        AccountId=twin.accounts["security-audit"],
        SourceParentId=twin.organizational_units["/Security"],
        DestinationParentId=twin.organizational_units["/"],
    )
    clock.advance(600)
    fresh = _sync(clock)
    assert fresh.synced_at == clock.now()
    assert queries.find_permission_set(name="PowerUserAccess") is None
    assert queries.get_account(account="payments-dev").status != "ACTIVE"
    assert "payments-dev" not in [one.name for one in queries.search_accounts(text="payments")]
    assert queries.get_account(account="security-audit").ou_path == "/"
    assert AccountRow.objects.count() == fresh.accounts


def test_a_unit_can_not_be_named_into_another_tree(twin: Twin, clock: FakeClock) -> None:
    unit = twin.organizations.create_organizational_unit(ParentId=twin.organizational_units["/"], Name="Workloads/Dev")[
        "OrganizationalUnit"
    ]
    twin.organizations.move_account(
        AccountId=twin.accounts["security-audit"], SourceParentId=twin.organizational_units["/Security"], DestinationParentId=unit["Id"]
    )
    _sync(clock)
    assert queries.get_account(account="security-audit").ou_path == "/Workloads%2FDev"


@pytest.mark.parametrize(
    "operation",
    [
        "DescribeOrganization",
        "ListRoots",
        "ListOrganizationalUnitsForParent",
        "ListAccountsForParent",
        "ListInstances",
        "ListPermissionSets",
        "DescribePermissionSet",
        "ListUsers",
        "ListGroups",
    ],
)
def test_half_a_sync_leaves_the_former_catalog(twin: Twin, clock: FakeClock, operation: str) -> None:
    former = _sync(clock)
    clock.advance(600)
    with when(operation, refuse("AccessDeniedException")), pytest.raises(Unavailable, match="AccessDeniedException"):
        _sync(clock)
    after = queries.freshness()
    assert "AccessDeniedException" in after.last_error
    assert (after.synced_at, after.accounts) == (former.synced_at, former.accounts)
    assert AccountRow.objects.count() == former.accounts
    assert _sync(clock).last_error == ""


def test_a_failing_write_leaves_the_former_catalog(twin: Twin, clock: FakeClock) -> None:
    former = _sync(clock)
    twin.organizations.create_account(AccountName="new", Email="new@example.com")
    with mock.patch("accessportal.catalog.store._principal_row", side_effect=RuntimeError("broken")), pytest.raises(RuntimeError):
        _sync(clock)
    assert queries.freshness().last_error == "broken"
    assert AccountRow.objects.count() == former.accounts
    assert queries.find_account(account="new") is None


def test_unreadable_tags_of_one_account_are_its_own_matter(twin: Twin, clock: FakeClock) -> None:
    dark = twin.accounts["payments-prod"]

    def answer(parameters: dict[str, Any]) -> Any:
        return refuse("AccessDeniedException")(parameters) if parameters["ResourceId"] == dark else None

    with when("ListTagsForResource", answer):
        fresh = _sync(clock)
    assert fresh.last_error == ""
    assert queries.get_account(account="payments-prod").tags is None
    assert queries.get_account(account="payments-dev").tags == {"env": "dev", "team": "payments"}


def test_tags_without_any_answer_are_an_outage(twin: Twin, clock: FakeClock) -> None:
    for number in range(30):
        twin.organizations.create_account(AccountName=f"account{number}", Email=f"account{number}@example.com")
    with when("ListTagsForResource", _no_answer), pytest.raises(Unavailable, match="EndpointConnectionError"):
        _sync(clock)
    assert AccountRow.objects.count() == 0


def test_a_permission_set_deleted_while_reading_is_left_out(twin: Twin, clock: FakeClock) -> None:
    gone = twin.permission_sets["PowerUserAccess"]

    def answer(parameters: dict[str, Any]) -> Any:
        return refuse("ResourceNotFoundException")(parameters) if parameters["PermissionSetArn"] == gone else None

    with when("DescribePermissionSet", answer):
        _sync(clock)
    assert PermissionSetRow.objects.count() == len(PERMISSION_SETS) - 1


@pytest.mark.parametrize("count", [0, 2])
def test_there_must_be_one_instance(twin: Twin, clock: FakeClock, count: int) -> None:
    instances = [{"InstanceArn": f"arn:{number}", "IdentityStoreId": f"d-{number}"} for number in range(count)]
    with when("ListInstances", lambda parameters: {"Instances": instances}), pytest.raises(Unavailable, match="Exactly one") as refused:
        _sync(clock)
    assert refused.value.code == "identity_center_instance"
    assert "Exactly one" in queries.freshness().last_error


def test_calls_to_identity_center_keep_the_common_pace(twin: Twin, clock: FakeClock) -> None:
    for number in range(50):
        twin.sso.create_permission_set(InstanceArn=twin.instance_arn, Name=f"Set{number}")
    started = clock.now()
    _sync(clock)
    assert (clock.now() - started).total_seconds() >= 50 / 20


def test_before_the_first_sync_nothing_is_known() -> None:
    fresh = queries.freshness()
    assert (fresh.synced_at, fresh.accounts, fresh.last_error) == (None, 0, "")
    assert SyncRun.objects.count() == 0


LISTS = {"ListUsers": "Users", "ListGroups": "Groups", "ListPermissionSets": "PermissionSets", "ListAccountsForParent": "Accounts"}


@pytest.mark.parametrize("operation", LISTS)
def test_an_empty_list_takes_nothing_away_unless_told(twin: Twin, clock: FakeClock, operation: str) -> None:
    former = _sync(clock)
    with when(operation, lambda _: {LISTS[operation]: []}):
        with pytest.raises(Conflict, match="The former catalog stays") as stopped:
            _sync(clock)
        assert stopped.value.code == "catalog_brake"
        after = queries.freshness()
        assert (after.accounts, after.permission_sets, after.principals) == (former.accounts, former.permission_sets, former.principals)
        assert "of the catalog are not in AWS's list any more" in after.last_error
        assert queries.find_user_principal(email="alice@example.com") is not None

        operations.sync_catalog(most_share=1, now=clock.now(), clock=clock)
    assert queries.freshness().last_error == ""
    if operation == "ListUsers":
        assert queries.find_user_principal(email="alice@example.com") is None


@pytest.mark.parametrize(("gone", "is_stopped"), [(5, False), (8, False), (9, True)])
def test_a_nearly_empty_list_is_stopped_by_its_share(twin: Twin, clock: FakeClock, gone: int, is_stopped: bool) -> None:
    names = [f"u{number}@example.com" for number in range(35)]
    for name in names:
        create_user(twin.identity_store, twin.identity_store_id, name, "U U")
    everybody = len(names) + len(PEOPLE)
    _sync(clock)
    left = twin.identity_store.list_users(IdentityStoreId=twin.identity_store_id)["Users"][: everybody - gone]

    with when("ListUsers", lambda _: {"Users": left}):
        if is_stopped:
            with pytest.raises(Conflict, match=f"{gone} of {everybody} users"):
                _sync(clock)
        else:
            _sync(clock)
