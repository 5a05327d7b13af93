"""What other programs read, with plain boto3: seed 001's keys, index, attribute names, types and access patterns."""

from __future__ import annotations

from typing import Any

import boto3
import pytest
from boto3.dynamodb.conditions import Key

from accessportal.directory import operations
from tests.directory.conftest import NOW, OLGA, PREFIX

pytestmark = pytest.mark.usefixtures("directory")

AT = "2026-03-02T09:00:00.322Z"
BY = "olga@example.com"


def _table() -> Any:
    return boto3.resource("dynamodb", region_name="eu-central-1").Table(f"{PREFIX}AccessManagement")


def _item(pk: str, sk: str) -> dict[str, Any]:
    item: dict[str, Any] = _table().get_item(Key={"pk": pk, "sk": sk}, ConsistentRead=True)["Item"]
    return item


def _without_ours(item: dict[str, Any]) -> dict[str, Any]:
    assert {"version", "audit_head"} <= item.keys()
    return {name: value for name, value in item.items() if name not in {"version", "audit_head"}}


def test_table_and_index() -> None:
    description = boto3.client("dynamodb", region_name="eu-central-1").describe_table(TableName=f"{PREFIX}AccessManagement")["Table"]
    assert description["KeySchema"] == [{"AttributeName": "pk", "KeyType": "HASH"}, {"AttributeName": "sk", "KeyType": "RANGE"}]
    [index] = description["GlobalSecondaryIndexes"]
    assert index["IndexName"] == "siKey1-pk-index"
    assert index["KeySchema"] == [{"AttributeName": "siKey1", "KeyType": "HASH"}, {"AttributeName": "pk", "KeyType": "RANGE"}]
    assert {pair["AttributeName"]: pair["AttributeType"] for pair in description["AttributeDefinitions"]} == {
        "pk": "S",
        "sk": "S",
        "siKey1": "S",
    }


def test_a_user() -> None:
    assert _without_ours(_item("U:alice@example.com", "U:alice@example.com")) == {
        "pk": "U:alice@example.com",
        "sk": "U:alice@example.com",
        "siKey1": "U",
        "email": "Alice@Example.com",
        "displayName": "Alice",
        "state": "enabled",
        "createdAt": AT,
        "createdBy": BY,
        "updatedAt": AT,
        "updatedBy": BY,
    }


def test_a_membership() -> None:
    assert _item("U:alice@example.com", "G:/engineering/payments") == {
        "pk": "U:alice@example.com",
        "sk": "G:/engineering/payments",
        "siKey1": "M:/engineering/payments",
        "role": "admin",
        "createdAt": AT,
        "createdBy": BY,
    }


def test_a_group() -> None:
    assert _without_ours(_item("G:/engineering/payments", "G:/engineering/payments")) == {
        "pk": "G:/engineering/payments",
        "sk": "G:/engineering/payments",
        "siKey1": "G",
        "id": "/engineering/payments",
        "name": "/engineering/payments",
        "description": "",
        "state": "enabled",
        "createdAt": AT,
        "createdBy": BY,
        "updatedAt": AT,
        "updatedBy": BY,
        "memberCount": 1,
        "childCount": 0,
    }


def test_child_groups_by_the_seeds_two_steps() -> None:
    operations.create_group(group_id="/engineering/web", name="Web", description="", actor=OLGA, now=NOW)
    found = _table().query(IndexName="siKey1-pk-index", KeyConditionExpression=Key("siKey1").eq("GH") & Key("pk").eq("G:/engineering"))[
        "Items"
    ]
    children = sorted(item["sk"] for item in found)
    assert children == ["G:/engineering/payments", "G:/engineering/web"]
    assert [_item(child, child)["id"] for child in children] == ["/engineering/payments", "/engineering/web"]


@pytest.mark.parametrize(("kind", "count"), [("U", 3), ("G", 4), ("GH", 1)])
def test_every_item_of_a_kind(kind: str, count: int) -> None:
    assert len(_table().query(IndexName="siKey1-pk-index", KeyConditionExpression=Key("siKey1").eq(kind))["Items"]) == count


def test_the_groups_of_a_user() -> None:
    found = _table().query(KeyConditionExpression=Key("pk").eq("U:bob@example.com") & Key("sk").begins_with("G:"))["Items"]
    assert [item["sk"] for item in found] == ["G:/security"]


def test_a_deleted_group_leaves_nothing_behind() -> None:
    operations.revoke_membership(email="alice@example.com", group_id="/engineering/payments", actor=OLGA, now=NOW)
    operations.delete_group(group_id="/engineering/payments", actor=OLGA, now=NOW)
    left = [item for item in _table().scan()["Items"] if "/engineering/payments" in item["pk"] + item["sk"]]
    assert left == []
    assert _item("G:/engineering", "G:/engineering")["childCount"] == 0
