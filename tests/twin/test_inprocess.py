"""The twin inside the test's process: every client reaches it, whenever it was made, and from any thread."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Any

import boto3
import pytest
from botocore.config import Config
from botocore.exceptions import ClientError, ConnectionClosedError

from accessportal.store.base import registered_models

if TYPE_CHECKING:
    from tests.fixtures_twin import Twin

ONE_ATTEMPT = Config(retries={"total_max_attempts": 1, "mode": "standard"})


def test_the_small_world_is_there(twin: Twin) -> None:
    accounts = {account["Name"] for account in twin.organizations.list_accounts()["Accounts"]}
    assert {"payments-dev", "payments-prod", "security-audit"} < accounts
    assert twin.permission_sets["PowerUserAccess"].startswith("arn:aws:sso:::permissionSet/ssoins-")
    described = twin.sso.describe_permission_set(InstanceArn=twin.instance_arn, PermissionSetArn=twin.permission_sets["PowerUserAccess"])
    assert described["PermissionSet"]["SessionDuration"] == "PT4H"
    assert twin.assignments() == set()


def test_accounts_that_joined_in_the_same_instant_page_apart(twin: Twin) -> None:
    pages = [twin.organizations.list_accounts(MaxResults=2)]
    while token := pages[-1].get("NextToken"):
        pages.append(twin.organizations.list_accounts(MaxResults=2, NextToken=token))
    names = [account["Name"] for page in pages for account in page["Accounts"]]
    assert len(names) == len(set(names)) == 4


def test_a_client_made_in_the_middle_of_a_test_reaches_the_same_state(twin: Twin) -> None:
    twin.sso.create_account_assignment(**twin.key("alice@example.com", "payments-dev", "PowerUserAccess"))
    twin.clock.advance(2)
    later = boto3.client("sso-admin", region_name="eu-central-1", config=ONE_ATTEMPT)
    found = later.list_account_assignments(
        InstanceArn=twin.instance_arn, AccountId=twin.accounts["payments-dev"], PermissionSetArn=twin.permission_sets["PowerUserAccess"]
    )
    assert [row["PrincipalId"] for row in found["AccountAssignments"]] == [twin.users["alice@example.com"]]


def test_a_lost_answer_takes_effect_but_is_not_heard(twin: Twin) -> None:
    twin.settings.lose_answer = 1.0
    with pytest.raises(ConnectionClosedError):
        twin.sso.create_account_assignment(**twin.key("alice@example.com", "payments-dev", "PowerUserAccess"))
    twin.clock.advance(2)
    assert twin.assignments() == {
        ("USER", twin.users["alice@example.com"], twin.accounts["payments-dev"], twin.permission_sets["PowerUserAccess"])
    }


def test_of_many_threads_one_starts_the_job_and_the_others_conflict(twin: Twin) -> None:
    def create(_: int) -> str:
        try:
            answer = twin.sso.create_account_assignment(**twin.key("alice@example.com", "payments-dev", "PowerUserAccess"))
        except ClientError as error:
            return error.response["Error"]["Code"]
        return answer["AccountAssignmentCreationStatus"]["Status"]

    with ThreadPoolExecutor(16) as pool:
        outcomes = list(pool.map(create, range(64)))
    assert sorted(outcomes) == ["ConflictException"] * 63 + ["IN_PROGRESS"]


def test_threads_write_items_side_by_side(twin: Twin) -> None:
    dynamodb: Any = boto3.client("dynamodb", region_name="eu-central-1")
    dynamodb.create_table(
        TableName="Counters",
        KeySchema=[{"AttributeName": "pk", "KeyType": "HASH"}],
        AttributeDefinitions=[{"AttributeName": "pk", "AttributeType": "S"}],
        BillingMode="PAY_PER_REQUEST",
    )

    def add(_: int) -> None:
        dynamodb.update_item(
            TableName="Counters", Key={"pk": {"S": "one"}}, UpdateExpression="ADD n :one", ExpressionAttributeValues={":one": {"N": "1"}}
        )

    with ThreadPoolExecutor(16) as pool:
        list(pool.map(add, range(200)))
    assert dynamodb.get_item(TableName="Counters", Key={"pk": {"S": "one"}})["Item"]["n"] == {"N": "200"}


@pytest.mark.usefixtures("tables")
def test_every_registered_table_is_made() -> None:
    assert registered_models()
    assert all(model.exists() for model in registered_models())
