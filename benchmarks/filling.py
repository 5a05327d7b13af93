"""Fills the tables fast with many requests like the real ones: copies, under new ids, of a few that the portal itself has made."""

from __future__ import annotations

import copy
import random
import uuid
from collections.abc import Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from datetime import datetime, timedelta
from itertools import islice
from typing import Any

import boto3
from botocore.config import Config

from accessportal.access_requests import operations
from accessportal.access_requests.policy import LONGEST_WAIT
from accessportal.access_requests.states import AccessRequest, Status
from accessportal.kernel.actors import Actor, person
from accessportal.kernel.clock import SystemClock
from accessportal.store.base import current_settings

Item = dict[str, Any]
_BATCH = 25  # DynamoDB's largest
_PER_TASK = 2000
_PROCESSES = 2
# Of a hundred requests. Enough wait, hold and fail in a thousand to fill every page that is measured.
SHARES = {"pending": 25, "active": 15, "stuck": 7, "denied": 8, "revoked": 45}
# One person asked for a tenth of all; whatever is open belongs to people with little else.
BUSY_SHARE = 10


@dataclass(frozen=True, slots=True)
class Pattern:
    """One real request, whole: its item and its events."""

    fate: str
    item: Item
    events: tuple[Item, ...]


def make_patterns(*, account: str, busy: Actor, approver: Actor) -> list[Pattern]:
    """One request of each fate, by the same operations that people use."""
    made = {fate: _make(fate, account, busy, approver) for fate in SHARES}
    patterns = [Pattern(fate, _item(request.request_id), tuple(_events(request.entity))) for fate, request in made.items()]
    for request in made.values():
        if request.status is Status.ACTIVE:
            operations.end(request_id=request.request_id, actor=busy, now=SystemClock().now())
            operations.carry_out(request_id=request.request_id, clock=SystemClock())
    return patterns


def fill(patterns: Sequence[Pattern], *, start: int, count: int, busy: str, accounts: Sequence[str], now: datetime) -> None:
    """Write ``count`` copies, numbers from ``start`` on. No end or deadline of them comes within a day. The stuck ones' work failed and is
    to be tried again nearly as late as may be: what says to wait longer is a clock's fault, and due at once."""
    tasks = [(first, min(_PER_TASK, start + count - first)) for first in range(start, start + count, _PER_TASK)]
    with ProcessPoolExecutor(_PROCESSES) as pool:
        futures = [
            pool.submit(_write, patterns, first, many, busy, accounts, now, current_settings().table_prefix) for first, many in tasks
        ]
        for future in futures:
            future.result()


def _make(fate: str, account: str, busy: Actor, approver: Actor) -> AccessRequest:
    clock = SystemClock()
    waits = fate in {"pending", "denied"}
    request = operations.submit(
        kind="aws_account",
        subject_id=None,
        target={"account": account, "permission_set": "AdministratorAccess" if waits else "PowerUserAccess"},
        duration_seconds=3600,
        reason="Look into the failed settlement run of last night, incident 4711",
        ticket_id="CHG-20817" if waits else "",
        submission_id=str(uuid.uuid4()),
        actor=busy,
        now=clock.now(),
    )
    if fate == "denied":
        return operations.deny(request_id=request.request_id, reason="Use the staging account", actor=approver, now=clock.now())
    if fate in {"active", "revoked"}:
        request = operations.carry_out(request_id=request.request_id, clock=clock)
        assert request.is_granted, request
    if fate == "revoked":
        operations.end(request_id=request.request_id, actor=busy, now=clock.now())
        request = operations.carry_out(request_id=request.request_id, clock=clock)
        assert request.status is Status.REVOKED, request
    return request


def _write(
    patterns: Sequence[Pattern], first: int, count: int, busy: str, accounts: Sequence[str], now: datetime, table_prefix: str
) -> None:
    client = boto3.session.Session().client("dynamodb", config=Config(retries={"total_max_attempts": 10, "mode": "standard"}))
    chance = random.Random(first)
    writes = _copies(patterns, range(first, first + count), busy, accounts, now, table_prefix, chance)
    while batch := list(islice(writes, _BATCH)):
        left: dict[str, Any] = {}
        for table, item in batch:
            left.setdefault(table, []).append({"PutRequest": {"Item": item}})
        while left:
            left = client.batch_write_item(RequestItems=left).get("UnprocessedItems", {})


def _copies(
    patterns: Sequence[Pattern],
    numbers: range,
    busy: str,
    accounts: Sequence[str],
    now: datetime,
    table_prefix: str,
    chance: random.Random,
) -> Iterator[tuple[str, Item]]:
    fates = [pattern for pattern in patterns for _ in range(SHARES[pattern.fate])]
    for number in numbers:
        pattern = fates[number * 37 % len(fates)]
        request_id = str(uuid.UUID(int=chance.getrandbits(128), version=4))
        is_open = pattern.fate in {"pending", "active", "stuck"}
        is_busy = not is_open and number % 6 == 0
        subject = busy if is_busy else f"person{number // 5}@example.com"
        at = now - timedelta(seconds=chance.uniform(0, 60 * 86_400))
        yield f"{table_prefix}ActiveRequests", _request(pattern, request_id, subject, chance.choice(accounts), at, now, chance)
        # The first alone: what an event costs does not depend on how many others each request has.
        for event in pattern.events[:1]:
            yield f"{table_prefix}AuditLog", _event(event, request_id, subject, at)


def _request(pattern: Pattern, request_id: str, subject: str, account: str, at: datetime, now: datetime, chance: random.Random) -> Item:
    item = copy.deepcopy(pattern.item)
    item |= {"request_id": {"S": request_id}, "subject_id": {"S": subject}, "requested_by": {"S": subject}, "account_id": {"S": account}}
    item["requested_at"] = {"N": str(int(at.timestamp()))}
    ends_at = at + timedelta(hours=1)
    if "open_subject" in item:
        item["open_subject"] = {"S": subject}
        ends_at = now + timedelta(seconds=chance.uniform(86_400, 30 * 86_400))
    item["expires_at"] = {"N": str(int(ends_at.timestamp()))}
    if pattern.fate == "stuck":
        due_at = now + 0.95 * LONGEST_WAIT
        item |= {"work_due_at": {"N": f"{due_at.timestamp():.3f}"}, "work_attempts": {"N": "3"}, "work_error": {"S": "job failed"}}
    return item


def _event(event: Item, request_id: str, subject: str, at: datetime) -> Item:
    moment = at + timedelta(seconds=int(event["sequence"]["N"]))
    shard = event["day#shard"]["S"].rpartition("#")[2]
    # Published long ago: its hash is that of the pattern, so it could not be published any more.
    kept = {name: value for name, value in event.items() if name != "outbox"}
    return kept | {
        "entity": {"S": f"request#{request_id}"},
        "subject": {"S": subject},
        "actor": {"S": subject},
        "at": {"N": f"{moment.timestamp():.3f}"},
        "day#shard": {"S": f"{moment:%Y-%m-%d}#{shard}"},
    }


def _item(request_id: str) -> Item:
    table = f"{current_settings().table_prefix}ActiveRequests"
    return _client().get_item(TableName=table, Key={"request_id": {"S": request_id}}, ConsistentRead=True)["Item"]  # type: ignore[no-any-return]


def _events(entity: str) -> list[Item]:
    answer = _client().query(
        TableName=f"{current_settings().table_prefix}AuditLog",
        KeyConditionExpression="entity = :entity",
        ExpressionAttributeValues={":entity": {"S": entity}},
        ConsistentRead=True,
    )
    return answer["Items"]  # type: ignore[no-any-return]


def _client() -> Any:
    return boto3.session.Session().client("dynamodb")


def busy_person() -> Actor:
    return person("alice0@example.com")
