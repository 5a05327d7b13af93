"""What other programs read, with plain boto3: seed 001's keys, index, attribute names, types and access patterns."""

from __future__ import annotations

from typing import Any

import boto3
import pytest
from boto3.dynamodb.conditions import Key

from accessportal.directory import operations
from accessportal.directory.states import GroupRole
from tests.directory.conftest import NOW, OLGA, PREFIX, add_group, add_person, join, table

pytestmark = pytest.mark.usefixtures("directory")

AT = "2026-03-02T09:00:00.322Z"
BY = "olga@example.com"


def _item(pk: str, sk: str) -> dict[str, Any]:
    """What lies there, but for the version of our own schema."""
    item: dict[str, Any] = table().get_item(Key={"pk": pk, "sk": sk}, ConsistentRead=True)["Item"]
    assert item.pop("schema_version") == 1
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
        "claims": {"permanent": {"role": "admin", "given_at": 1772442000, "given_by": BY}},
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
        "ancestors": ["/", "/engineering"],
        "treeVersion": 0,
        "admins": {"alice@example.com"},
    }


def test_a_branch() -> None:
    assert _item("G:/engineering", "G:/engineering/payments") == {
        "pk": "G:/engineering",
        "sk": "G:/engineering/payments",
        "siKey1": "GH",
        "createdAt": AT,
        "createdBy": BY,
    }


def _children(group_id: str) -> list[str]:
    """The seed's "List child groups": its query of the index, then its batch get of the groups."""
    found = table().query(IndexName="siKey1-pk-index", KeyConditionExpression=Key("siKey1").eq("GH") & Key("pk").eq(f"G:{group_id}"))[
        "Items"
    ]
    if not found:
        return []
    keys = [{"pk": item["sk"], "sk": item["sk"]} for item in found]
    name = f"{PREFIX}AccessManagement"
    answer = boto3.resource("dynamodb", region_name="eu-central-1").batch_get_item(RequestItems={name: {"Keys": keys}})
    return sorted(str(item["id"]) for item in answer["Responses"][name])


def test_child_groups_by_the_seeds_two_steps() -> None:
    add_group("/engineering/web")
    assert _children("/engineering") == ["/engineering/payments", "/engineering/web"]
    assert _children("/") == ["/eng", "/engineering", "/security"]
    operations.move_group(group_id="/engineering", parent_id="/security", actor=OLGA, now=NOW)
    assert _children("/security") == ["/engineering"]
    assert _children("/engineering") == ["/engineering/payments", "/engineering/web"]


def test_a_role_changed_and_revoked() -> None:
    key = ("U:bob@example.com", "G:/security")
    join("bob@example.com", "/security", GroupRole.CONTRIBUTOR)
    assert _item(*key)["role"] == "contributor"
    join("bob@example.com", "/eng")
    operations.revoke_membership(email="bob@example.com", group_id="/security", actor=OLGA, now=NOW)
    assert "Item" not in table().get_item(Key={"pk": key[0], "sk": key[1]})
    operations.revoke_membership(email="bob@example.com", group_id="/eng", actor=OLGA, now=NOW)
    assert table().query(KeyConditionExpression=Key("pk").eq("U:bob@example.com"))["Items"] == []


def test_the_members_of_a_group() -> None:
    add_person("carol@example.com", "/security", GroupRole.READER)
    found = table().query(IndexName="siKey1-pk-index", KeyConditionExpression=Key("siKey1").eq("M:/security"))["Items"]
    assert [item["pk"] for item in found] == ["U:bob@example.com", "U:carol@example.com"]


@pytest.mark.parametrize(("kind", "count"), [("U", 4), ("G", 5), ("GH", 4)])
def test_every_item_of_a_kind(kind: str, count: int) -> None:
    assert len(table().query(IndexName="siKey1-pk-index", KeyConditionExpression=Key("siKey1").eq(kind))["Items"]) == count


def test_the_groups_of_a_user() -> None:
    found = table().query(KeyConditionExpression=Key("pk").eq("U:bob@example.com") & Key("sk").begins_with("G:"))["Items"]
    assert [item["sk"] for item in found] == ["G:/security"]


def test_a_deleted_group_leaves_nothing_behind() -> None:
    operations.revoke_membership(email="alice@example.com", group_id="/engineering/payments", actor=OLGA, now=NOW)
    operations.delete_group(group_id="/engineering/payments", actor=OLGA, now=NOW)
    left = [item["siKey1"] for item in table().scan()["Items"] if "/engineering/payments" in item["pk"] + item["sk"]]
    assert left == ["D"], "its departure stays until everybody has looked at it"
    assert _item("G:/engineering", "G:/engineering")["childCount"] == 0
    assert _item("C:groups", "C:groups")["groupCount"] == 4
