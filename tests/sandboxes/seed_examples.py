"""The code examples of seed 002 as another program runs them: plain boto3, word for word but for names and values passed in."""

from __future__ import annotations

import functools
from typing import Any

import boto3


@functools.cache  # making a session and what it reads takes a fifth of a second
def table_named(name: str) -> Any:
    return boto3.session.Session(region_name="eu-central-1").resource("dynamodb").Table(name)


def find_available(table: Any) -> list[dict[str, Any]]:
    response = table.query(
        IndexName="StatusIndex",
        KeyConditionExpression="#status = :status",
        ExpressionAttributeNames={"#status": "status"},
        ExpressionAttributeValues={":status": "available"},
        Limit=15,
    )
    return response["Items"]  # type: ignore[no-any-return]


def find_of_track(table: Any, track: str) -> list[dict[str, Any]]:
    response = table.query(
        IndexName="TrackIndex",
        KeyConditionExpression="allocated_to_track = :track",
        ExpressionAttributeValues={":track": track},
    )
    return response["Items"]  # type: ignore[no-any-return]


def find_of_key(table: Any, key: str) -> list[dict[str, Any]]:
    response = table.query(
        IndexName="IdempotencyIndex",
        KeyConditionExpression="idempotency_key = :key",
        ExpressionAttributeValues={":key": key},
        Limit=1,
    )
    return response["Items"]  # type: ignore[no-any-return]


def allocate(table: Any, sandbox_id: str, *, track: str, now: int) -> None:
    table.update_item(
        Key={"PK": f"SBX#{sandbox_id}", "SK": "META"},
        UpdateExpression="""
        SET #status = :allocated,
            allocated_to_track = :track_id,
            allocated_at = :now,
            idempotency_key = :idem_key,
            updated_at = :now
    """,
        ConditionExpression="attribute_exists(PK) AND #status = :available",
        ExpressionAttributeNames={"#status": "status"},
        ExpressionAttributeValues={
            ":allocated": "allocated",
            ":available": "available",
            ":track_id": track,
            ":now": now,
            ":idem_key": track,
        },
    )


def mark_for_deletion(table: Any, sandbox_id: str, *, track: str, now: int) -> None:
    table.update_item(
        Key={"PK": f"SBX#{sandbox_id}", "SK": "META"},
        UpdateExpression="""
        SET #status = :pending_deletion,
            deletion_requested_at = :now,
            updated_at = :now
    """,
        ConditionExpression="""
        attribute_exists(PK) AND
        #status = :allocated AND
        allocated_to_track = :track_id AND
        allocated_at > :max_expiry
    """,
        ExpressionAttributeNames={"#status": "status"},
        ExpressionAttributeValues={
            ":pending_deletion": "pending_deletion",
            ":allocated": "allocated",
            ":track_id": track,
            ":now": now,
            ":max_expiry": now - 4 * 3600,
        },
    )


def scan_expired(table: Any, *, cutoff: int) -> list[dict[str, Any]]:
    """The seed's "Find expired allocations", by the scan that its table of access patterns names."""
    response = table.scan(
        FilterExpression="#status = :status AND allocated_at < :cutoff",
        ExpressionAttributeNames={"#status": "status"},
        ExpressionAttributeValues={":status": "allocated", ":cutoff": cutoff},
    )
    return response["Items"]  # type: ignore[no-any-return]


def scan_pending(table: Any) -> list[dict[str, Any]]:
    """The seed's "Find pending deletions"."""
    response = table.scan(
        FilterExpression="#status = :status",
        ExpressionAttributeNames={"#status": "status"},
        ExpressionAttributeValues={":status": "pending_deletion"},
    )
    return response["Items"]  # type: ignore[no-any-return]


def insert_available(table: Any, sandbox_id: str, *, now: int) -> None:
    """The seed's first state, as its own program writes it."""
    table.put_item(
        Item={
            "PK": f"SBX#{sandbox_id}",
            "SK": "META",
            "sandbox_id": sandbox_id,
            "name": f"outside-{sandbox_id}",
            "external_id": f"ext-{sandbox_id}",
            "status": "available",
            "lab_duration_hours": 4,
            "deletion_retry_count": 0,
            "allocated_at": 0,
            "created_at": now,
            "updated_at": now,
            "last_synced": now,
        }
    )


def get(table: Any, sandbox_id: str) -> dict[str, Any]:
    item: dict[str, Any] = table.get_item(Key={"PK": f"SBX#{sandbox_id}", "SK": "META"}, ConsistentRead=True)["Item"]
    return item
