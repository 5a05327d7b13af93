"""Seed 000's table as another program sees it: plain boto3, the seed's names and types, and nothing of ours."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

import boto3

if TYPE_CHECKING:
    from mypy_boto3_dynamodb import DynamoDBClient

# Attribute: type, as in the seed's table. ``revoked_at`` is there once the access is revoked.
ATTRIBUTES = {
    "request_id": "S",
    "subject_id": "S",
    "rule_name": "S",
    "ticket_id": "S",
    "account_id": "S",
    "permission_set": "S",
    "status": "S",
    "requested_at": "N",
    "expires_at": "N",
    "approval_required": "BOOL",
}
_WHOLE = re.compile(r"\d+")


def client() -> DynamoDBClient:
    return boto3.session.Session(region_name="eu-central-1").client("dynamodb")


def expired(table: str, now: int, *, status: str = "ACTIVE") -> list[dict[str, Any]]:
    """The seed's query: ``status = :s`` and ``expires_at <= :now`` on ``ExpirationIndex``."""
    answer = client().query(
        TableName=table,
        IndexName="ExpirationIndex",
        KeyConditionExpression="#status = :s AND expires_at <= :now",
        ExpressionAttributeNames={"#status": "status"},
        ExpressionAttributeValues={":s": {"S": status}, ":now": {"N": str(now)}},
    )
    return answer["Items"]


def get(table: str, request_id: str) -> dict[str, Any]:
    """The seed's look-up by ``request_id``."""
    return client().get_item(TableName=table, Key={"request_id": {"S": request_id}}, ConsistentRead=True)["Item"]


def check_item(item: dict[str, Any], *, status: str, is_revoked: bool = False) -> None:
    """The seed's attributes are there, by name and type; times are whole epoch seconds."""
    types = {name: next(iter(value)) for name, value in item.items()}
    wanted = ATTRIBUTES | ({"revoked_at": "N"} if is_revoked else {})
    assert {name: types.get(name) for name in wanted} == wanted
    assert ("revoked_at" in item) == is_revoked
    assert item["status"] == {"S": status}
    for name, kind in wanted.items():
        if kind == "N":
            assert _WHOLE.fullmatch(item[name]["N"]), (name, item[name])


def check_table(table: str) -> None:
    """The seed's key and index."""
    found = client().describe_table(TableName=table)["Table"]
    assert found["KeySchema"] == [{"AttributeName": "request_id", "KeyType": "HASH"}]
    indexes = {index["IndexName"]: index for index in found["GlobalSecondaryIndexes"]}
    assert indexes["ExpirationIndex"]["KeySchema"] == [
        {"AttributeName": "status", "KeyType": "HASH"},
        {"AttributeName": "expires_at", "KeyType": "RANGE"},
    ]
    assert indexes["ExpirationIndex"]["Projection"] == {"ProjectionType": "ALL"}
    types = {one["AttributeName"]: one["AttributeType"] for one in found["AttributeDefinitions"]}
    assert (types["request_id"], types["status"], types["expires_at"]) == ("S", "S", "N")
