"""``submit`` and the queue page against the bare boto3 calls that they need, in turns in one run."""

from __future__ import annotations

import statistics
import time
import uuid
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import boto3

from accessportal.access_requests import queries
from accessportal.kernel.clock import SystemClock, to_epoch
from accessportal.store.base import current_settings
from benchmarks import costs

_TIMES = 60
_PAGE = 26  # what a page of 25 asks for, to know whether there is a next one
Item = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Compared:
    """Medians."""

    ours_ms: float
    bare_ms: float
    bare_calls: int


def compare_submit(account: str) -> Compared:
    bare = _BareSubmit(account)
    return _compared(lambda: costs.submit("AdministratorAccess", account), bare.run, bare.calls)


def compare_queue() -> Compared:
    bare = _BareQueue()
    return _compared(lambda: queries.list_waiting_for(actor=costs.BOB, now=SystemClock().now()), bare.run, bare.calls)


def _compared(ours: Callable[[], object], bare: Callable[[], object], bare_calls: int) -> Compared:
    for warm_up in (ours, bare):
        warm_up()
    spans: tuple[list[float], list[float]] = ([], [])
    for _ in range(_TIMES):
        for found, action in zip(spans, (ours, bare), strict=True):
            began = time.perf_counter()
            action()
            found.append(1000 * (time.perf_counter() - began))
    return Compared(statistics.median(spans[0]), statistics.median(spans[1]), bare_calls)


class _Bare:
    """A plain client, and the facts that both actions need."""

    def __init__(self) -> None:
        self._client = boto3.session.Session().client("dynamodb")
        self._prefix = current_settings().table_prefix

    def _query(self, table: str, condition: str, values: dict[str, str], **more: Any) -> list[Item]:
        given = {name: {"S": value} for name, value in values.items()}
        answer = self._client.query(
            TableName=self._prefix + table, KeyConditionExpression=condition, ExpressionAttributeValues=given, **more
        )
        return answer["Items"]

    def _batch(self, table: str, keys: list[tuple[str, str]]) -> None:
        wanted = [{"pk": {"S": pk}, "sk": {"S": sk}} for pk, sk in keys]
        self._client.batch_get_item(RequestItems={self._prefix + table: {"Keys": wanted, "ConsistentRead": True}})

    def _rules_stamp(self) -> None:
        self._client.get_item(
            TableName=f"{self._prefix}AccessRules", Key={"rule_name": {"S": "#set"}, "version": {"N": "0"}}, ConsistentRead=True
        )


class _BareSubmit(_Bare):
    """The person with their memberships, their groups, the rules' stamp, and the write of request and event."""

    calls = 4

    def __init__(self, account: str) -> None:
        super().__init__()
        made = costs.submit("AdministratorAccess", account)
        key = {"request_id": {"S": made.request_id}}
        self._request = self._client.get_item(TableName=f"{self._prefix}ActiveRequests", Key=key)["Item"]
        (self._event,) = self._query("AuditLog", "entity = :entity", {":entity": made.entity})

    def run(self) -> None:
        person = f"U:{costs.BUSY.name}"
        self._query("AccessManagement", "pk = :pk", {":pk": person}, ConsistentRead=True)
        self._batch("AccessManagement", [(f"G:{group}", f"G:{group}") for group in ("/engineering", "/engineering/payments")])
        self._rules_stamp()
        request_id = str(uuid.uuid4())
        self._client.transact_write_items(
            TransactItems=[
                self._put("ActiveRequests", "request_id", self._request | {"request_id": {"S": request_id}}),
                self._put("AuditLog", "entity", self._event | {"entity": {"S": f"request#{request_id}"}}),
            ]
        )

    def _put(self, table: str, key: str, item: Any) -> Any:
        return {"Put": {"TableName": self._prefix + table, "Item": item, "ConditionExpression": f"attribute_not_exists({key})"}}


class _BareQueue(_Bare):
    """One page of the index, the rules' stamp, and who is in the one group that approves: its groups, members and people."""

    calls = 8

    def run(self) -> None:
        self._client.query(
            TableName=f"{self._prefix}ActiveRequests",
            IndexName="ExpirationIndex",
            KeyConditionExpression="#status = :status AND expires_at >= :now",
            ExpressionAttributeNames={"#status": "status"},
            ExpressionAttributeValues={":status": {"S": "PENDING"}, ":now": {"N": str(to_epoch(SystemClock().now()) - 86_400 * 90)}},
            Limit=_PAGE,
        )
        self._rules_stamp()
        self._batch("AccessManagement", [("G:/security", "G:/security")])
        below = {":kind": "G", ":prefix": "G:/security/"}
        self._query("AccessManagement", "siKey1 = :kind AND begins_with(pk, :prefix)", below, IndexName="siKey1-pk-index")
        members = [
            (item["pk"]["S"], item["sk"]["S"])
            for group in ("/security", "/security/watch")
            for item in self._query("AccessManagement", "siKey1 = :members", {":members": f"M:{group}"}, IndexName="siKey1-pk-index")
        ]
        self._batch("AccessManagement", members)
        self._batch("AccessManagement", [(pk, pk) for pk, _ in members])
