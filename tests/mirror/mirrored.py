"""What Cognito must hold, worked out from the table's plain items, and what it holds, as moto itself has it (faults are for clients)."""

from __future__ import annotations

import functools
import json
from dataclasses import dataclass
from datetime import datetime
from typing import Any

import boto3
from boto3.dynamodb.types import TypeDeserializer
from moto.cognitoidp.models import cognitoidp_backends
from moto.core import DEFAULT_ACCOUNT_ID

from tests.fixtures_twin import REGION

ROLES = ("reader", "contributor", "admin")


@dataclass(frozen=True)
class Image:
    """Users with whether they are enabled, and the groups with their members."""

    users: dict[str, bool]
    groups: dict[str, frozenset[str]]


@functools.cache
def _client(service: str) -> Any:
    # Kept between tests: a client holds no state of the twin, and making one costs up to 80 ms.
    return boto3.client(service, region_name=REGION)  # type: ignore[call-overload]


def items() -> list[dict[str, Any]]:
    pages = _client("dynamodb").get_paginator("scan").paginate(TableName="AccessManagement", ConsistentRead=True)
    read = TypeDeserializer().deserialize
    return [{name: read(value) for name, value in item.items()} for page in pages for item in page["Items"]]


def wanted(now: datetime) -> Image:
    everything = items()
    people = {item["pk"][2:]: item for item in everything if item["pk"] == item["sk"] and item["pk"].startswith("U:")}
    live = [
        item["pk"][2:] for item in everything if item["pk"] == item["sk"] and item["pk"].startswith("G:") and item["state"] == "enabled"
    ]
    groups: dict[str, set[str]] = {f"{group}:{role}": set() for group in live for role in ROLES}
    for item in everything:
        if not (item["pk"].startswith("U:") and item["sk"].startswith("G:")):
            continue
        claims = item.get("claims", {"permanent": {"role": item.get("role")}}).values()
        roles = [claim["role"] for claim in claims if "ends_at" not in claim or now.timestamp() < claim["ends_at"]]
        if roles and item["sk"][2:] in live and people[item["pk"][2:]]["state"] == "enabled":
            groups[f"{item['sk'][2:]}:{max(roles, key=ROLES.index)}"].add(item["pk"][2:])
    return Image(
        users={person: item["state"] == "enabled" for person, item in people.items()},
        groups={name: frozenset(members) for name, members in groups.items()},
    )


def present(pool: str) -> Image:
    found = cognitoidp_backends[DEFAULT_ACCOUNT_ID][REGION].user_pools[pool]
    return Image(
        users={name: user.enabled for name, user in found.users.items()},
        groups={name: frozenset(user.username for user in group.users) for name, group in found.groups.items()},
    )


def federate(pool: str, username: str, *, provider: str, status: str = "EXTERNAL_PROVIDER") -> None:
    """The user of that name is in the pool, and somebody from ``provider`` has signed in as it: what moto itself can't do."""
    users = cognitoidp_backends[DEFAULT_ACCOUNT_ID][REGION].user_pools[pool].users
    if username not in users:
        _client("cognito-idp").admin_create_user(UserPoolId=pool, Username=username, MessageAction="SUPPRESS")
    identities = [{"userId": "alice@example.com", "providerName": provider, "providerType": "SAML"}]
    user: Any = users[username]
    user.status = status
    user.attributes.append({"Name": "identities", "Value": json.dumps(identities)})


def pending() -> list[str]:
    return sorted(item["pk"] for item in items() if item["pk"].startswith("W:"))
