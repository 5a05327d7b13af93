"""Faults of moto that would teach clients wrong things or make a demo crawl, put right once per process."""

from __future__ import annotations

import copy
import functools
import json
import sys
import types
from collections.abc import Callable
from typing import Any

import moto.dynamodb.models
import moto.iam.models
from moto.cognitoidp.models import CognitoIdpBackend
from moto.core import DEFAULT_ACCOUNT_ID
from moto.core.responses import ActionResult
from moto.dynamodb.models import DynamoDBBackend
from moto.dynamodb.models.dynamo_type import DynamoType, Item
from moto.dynamodb.models.table import Table
from moto.dynamodb.responses import DynamoHandler
from moto.moto_api._internal import mock_random
from moto.organizations.utils import PAGINATION_MODEL
from moto.ssoadmin.models import PermissionSet

from accessportal.twin.moto_state import wire
from accessportal.twin.repairs_of_evidence import repair_evidence
from accessportal.twin.repairs_of_speed import repair_speed

# The place of ``index_name`` among the arguments of Table.query after the hash key.
_INDEX_NAME = 6
_COGNITO_PAGE = 60
_ITEM_ACTIONS = {"GetItem", "PutItem", "UpdateItem", "DeleteItem", "Query", "Scan", "BatchGetItem", "BatchWriteItem"}
_ITEM_ACTIONS |= {"TransactGetItems", "TransactWriteItems"}

Slot = tuple[Table, DynamoType, DynamoType | None]


@functools.cache
def repair_moto() -> None:
    """Permission sets get ARNs of AWS's shape; accounts made in the same instant are paged apart; DynamoDB does not slow down as
    its tables grow more than it must."""
    PermissionSet.generate_id = staticmethod(_permission_set_arn)  # type: ignore[method-assign]
    # moto's page token names an account by its time of joining, which two accounts may share.
    PAGINATION_MODEL["list_accounts"]["unique_attribute"] = "Id"
    moto.iam.models.get_account_id_from = _one_caller
    PermissionSet.to_json = _permission_set_json(PermissionSet.to_json)  # type: ignore[method-assign]
    _roll_back_by_item()
    _query_by_key()
    _answer_items_straight()
    _look_up_once()
    _page_cognito_by_name()
    repair_evidence()
    repair_speed()


def _permission_set_arn(instance_arn: str) -> str:
    """moto makes ``…:instance/ssoins-1/ps-2``; AWS has ``…:permissionSet/ssoins-1/ps-2`` and refuses the former."""
    suffix = mock_random.get_random_string(length=16).lower()
    return f"{instance_arn.replace(':instance/', ':permissionSet/')}/ps-{suffix}"


def _one_caller(access_key: str) -> str:
    """moto looks for the caller's key in the roles of every account, at every call: 0.2 s with 5,000 accounts."""
    return DEFAULT_ACCOUNT_ID


def _permission_set_json(to_json: Callable[..., dict[str, Any]]) -> Callable[..., dict[str, Any]]:
    """moto answers the number 3600 where no session length was given; AWS answers ``PT1H``."""

    def described(self: PermissionSet, *args: Any, **kwargs: Any) -> dict[str, Any]:
        answer = to_json(self, *args, **kwargs)
        body = answer.get("PermissionSet", answer)
        if body.get("SessionDuration") == 3600:
            body["SessionDuration"] = "PT1H"
        return answer

    return described


def _roll_back_by_item() -> None:
    """A transaction of moto copies every table that it touches, whole, so as to roll back. This keeps only the items it names."""
    transact = DynamoDBBackend.transact_write_items

    def transact_write_items(self: DynamoDBBackend, transact_items: list[dict[str, Any]]) -> None:
        before = [(slot, copy.deepcopy(slot[0].get_item(*slot[1:]))) for slot in _slots(self, transact_items)]
        try:
            transact(self, transact_items)
        except Exception:
            for slot, item in before:
                _restore(slot, item)
            raise

    def deepcopy(value: Any, memo: dict[int, Any] | None = None) -> Any:
        return value if isinstance(value, Table) else copy.deepcopy(value, memo)

    DynamoDBBackend.transact_write_items = transact_write_items  # type: ignore[method-assign]
    moto.dynamodb.models.copy = types.SimpleNamespace(deepcopy=deepcopy)  # type: ignore[assignment]


def _slots(backend: DynamoDBBackend, transact_items: list[dict[str, Any]]) -> list[Slot]:
    """Where the items of a transaction lie. What is wrong with the transaction is left for moto to say."""
    slots: list[Slot] = []
    for action in (action for step in transact_items for verb, action in step.items() if verb != "ConditionCheck"):
        table = backend.tables.get(action.get("TableName", ""))
        key = action.get("Item") or action.get("Key") or {}
        if table is not None and table.hash_key_attr in key and (table.range_key_attr is None or table.range_key_attr in key):
            range_key = DynamoType(key[table.range_key_attr]) if table.range_key_attr else None
            slots.append((table, DynamoType(key[table.hash_key_attr]), range_key))
    return slots


def _restore(slot: Slot, item: Item | None) -> None:
    table, hash_key, range_key = slot
    place: Any = table.items if range_key is None else table.items[hash_key]
    key = hash_key if range_key is None else range_key
    if item is None:
        place.pop(key, None)
    else:
        place[key] = item


def _query_by_key() -> None:
    """A query of moto sorts the whole table first. This shows it only the items with the wanted hash key."""
    query = Table.query

    def narrowed_query(self: Table, hash_key: DynamoType | None, *args: Any, **kwargs: Any) -> Any:
        index_name = kwargs.get("index_name") or (args[_INDEX_NAME] if len(args) > _INDEX_NAME else None)
        items = _with_values(self, kwargs["hash_key_conditions"]) if index_name else _with_hash_key(self, hash_key)
        self.all_items = lambda: items  # type: ignore[method-assign]
        try:
            return query(self, hash_key, *args, **kwargs)
        finally:
            del self.all_items

    Table.query = narrowed_query  # type: ignore[method-assign]


def _with_hash_key(table: Table, hash_key: DynamoType | None) -> list[Item]:
    found: Any = table.items.get(hash_key) if hash_key is not None else None
    if not found:
        return []
    return list(found.values()) if table.range_key_attr else [found]


def _with_values(table: Table, conditions: list[tuple[str, DynamoType]]) -> list[Item]:
    name, wanted = conditions[0]
    rows: Any = table.items.values()
    items = (item for row in rows for item in row.values()) if table.range_key_attr else rows
    kind, text = wanted.type, wanted.value
    # Written out: asking each value for its equality takes three times as long.
    return [item for item in items if (value := item.attrs.get(name)) is not None and value.value == text and value.type == kind]


def _answer_items_straight() -> None:
    """moto sends every answer through a model of all its fields: a third of a call. An answer about items is JSON as it stands."""
    handler: Any = DynamoHandler
    serialized = handler.serialized

    def straight(self: DynamoHandler, answer: ActionResult) -> Any:
        if self._get_action() not in _ITEM_ACTIONS or not isinstance(answer.result, dict):
            return serialized(self, answer)
        body = {name: value for name, value in answer.result.items() if value is not None}
        return 200, {"Content-Type": "application/x-amz-json-1.0"} | self.response_headers, json.dumps(body, default=wire)

    handler.serialized = straight


def _look_up_once() -> None:
    """moto lists its own directory and inspects its own classes at every call: a third of the time that it takes to answer."""
    modules = tuple(moto.backends.list_of_moto_modules())
    moto.backends.list_of_moto_modules = lambda: iter(modules)
    moto.core.responses.method_names_from_class = functools.cache(moto.core.responses.method_names_from_class)


def _page_cognito_by_name() -> None:
    """moto's page token names the first row of the next page: a list ends in an error when that user or group was deleted meanwhile,
    and a user's groups come in an order that changes. These pages go on after the last name, as AWS's do; and the users of a
    group are found without looking at all users."""
    backend: Any = CognitoIdpBackend
    backend.list_users = _paged(backend.list_users, "pagination_token", "username")
    backend.list_groups = _paged(backend.list_groups, "next_token", "group_name")
    backend.list_users_in_group = _paged(_users_in_group, "next_token", "username")
    backend.admin_list_groups_for_user = _paged(backend.admin_list_groups_for_user, "next_token", "group_name")


def _users_in_group(self: CognitoIdpBackend, user_pool_id: str, group_name: str, **_all: Any) -> tuple[list[Any], None]:
    return list(self.get_group(user_pool_id, group_name).users), None


def _paged(listing: Callable[..., Any], token: str, name: str) -> Callable[..., Any]:
    def page(self: CognitoIdpBackend, *args: Any, limit: str | int | None = None, **tokens: str | None) -> tuple[list[Any], str | None]:
        rows, _ = listing(self, *args, limit=sys.maxsize)
        after = tokens.get(token) or ""
        rest = sorted((row for row in rows if getattr(row, name) > after), key=lambda row: str(getattr(row, name)))
        size = min(int(limit or _COGNITO_PAGE), _COGNITO_PAGE)
        return rest[:size], getattr(rest[size - 1], name) if len(rest) > size else None

    return page
