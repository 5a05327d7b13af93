"""Seed 002's own program, as short as it can be written, for :mod:`benchmarks.lending_compared`: its three calls of DynamoDB with plain
boto3, and nothing else. No fence, no event, no token, no deadline, and keys by an index.

    python -m benchmarks.lending_plain PORT TABLE
"""

from __future__ import annotations

import json
import random
import sys
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import boto3
from botocore.config import Config
from botocore.exceptions import ClientError

_LOOKED_AT = 15
_MOST_LOOKS = 3
_table: Any = None


def take(track: str, key: str) -> dict[str, Any] | None:
    """The seed's query of ``IdempotencyIndex``, its query of ``StatusIndex``, and its conditional update."""
    held = _query("IdempotencyIndex", "idempotency_key", key, limit=1)
    if held and held[0]["status"] == "allocated":
        return held[0]
    for _ in range(_MOST_LOOKS):
        found = _query("StatusIndex", "status", "available", limit=_LOOKED_AT)
        random.shuffle(found)
        for one in found:
            lent = _updated(
                one["sandbox_id"],
                "SET #status = :allocated, allocated_to_track = :track, allocated_at = :now, idempotency_key = :key, updated_at = :now",
                "attribute_exists(PK) AND #status = :available",
                {":allocated": "allocated", ":available": "available", ":track": track, ":key": key, ":now": int(time.time())},
            )
            if lent is not None:
                return lent
    return None


def release(sandbox_id: str, track: str) -> dict[str, Any] | None:
    """The seed's other conditional update."""
    now = int(time.time())
    return _updated(
        sandbox_id,
        "SET #status = :pending, deletion_requested_at = :now, updated_at = :now",
        "attribute_exists(PK) AND #status = :allocated AND allocated_to_track = :track AND allocated_at > :oldest",
        {":pending": "pending_deletion", ":allocated": "allocated", ":track": track, ":now": now, ":oldest": now - 4 * 3600},
    )


def _query(index: str, name: str, value: str, *, limit: int) -> list[dict[str, Any]]:
    found = _table.query(
        IndexName=index,
        KeyConditionExpression="#name = :value",
        ExpressionAttributeNames={"#name": name},
        ExpressionAttributeValues={":value": value},
        Limit=limit,
    )
    items: list[dict[str, Any]] = found["Items"]
    return items


def _updated(sandbox_id: str, update: str, condition: str, values: dict[str, Any]) -> dict[str, Any] | None:
    try:
        answer = _table.update_item(
            Key={"PK": f"SBX#{sandbox_id}", "SK": "META"},
            UpdateExpression=update,
            ConditionExpression=condition,
            ExpressionAttributeNames={"#status": "status"},
            ExpressionAttributeValues=values,
            ReturnValues="ALL_NEW",
        )
    except ClientError as error:
        if error.response["Error"]["Code"] != "ConditionalCheckFailedException":
            raise
        return None
    row: dict[str, Any] = answer["Attributes"]
    return row


class Handler(BaseHTTPRequestHandler):
    """The two addresses that clients use. The time of the allocation stands where ours answers with a fence."""

    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True

    def do_POST(self) -> None:
        track = self.headers["X-Track-ID"]
        if self.path == "/v1/allocate":
            row = take(track, self.headers.get("Idempotency-Key", track))
            self._answer(201 if row else 409, row)
        else:
            row = release(self.path.split("/")[3], track)
            self._answer(200 if row else 403, row)

    def do_GET(self) -> None:
        self._answer(200, {"sandbox_id": "", "allocated_at": 0})

    def log_message(self, *_: Any) -> None:
        return

    def _answer(self, status: int, row: dict[str, Any] | None) -> None:
        body: dict[str, Any] = {"error": {"code": "NO_SANDBOXES_AVAILABLE"}}
        if row is not None:
            body = {"sandbox_id": row["sandbox_id"], "fence": int(row["allocated_at"])}
        text = json.dumps(body).encode()
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(text)))
        self.end_headers()
        self.wfile.write(text)


class Server(ThreadingHTTPServer):
    request_queue_size = 128


if __name__ == "__main__":
    _table = boto3.session.Session().resource("dynamodb", config=Config(max_pool_connections=100)).Table(sys.argv[2])
    Server(("127.0.0.1", int(sys.argv[1])), Handler).serve_forever()
