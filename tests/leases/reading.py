"""The pool of accounts as the seed's programs read it: plain boto3, by the key alone."""

from __future__ import annotations

from collections import Counter
from typing import Any

import boto3
from boto3.dynamodb.conditions import Key

from accessportal.store.base import current_settings

STATES = ("initial", "available", "leased", "dirty", "failed")


def table() -> Any:
    settings = current_settings()
    return boto3.resource("dynamodb", region_name=settings.region).Table(f"{settings.table_prefix}AccountPool")


def data_of(pk: str) -> Any:
    """The seed's ``Query pk=…``: its ``data``, or ``None`` without an item."""
    items = table().query(KeyConditionExpression=Key("pk").eq(pk), ConsistentRead=True)["Items"]
    return items[0].get("data") if items else None


def ids_in(name: str) -> list[str]:
    return sorted(data_of(name) or [])


def lists() -> dict[str, list[str]]:
    """Every list that holds anything."""
    found = {name: ids_in(f"account_status#{name}") for name in (*STATES, "all")} | {"active": ids_in("lease_status#active")}
    return {name: ids for name, ids in found.items() if ids}


def lists_by_rows() -> dict[str, list[str]]:
    """The same, made of the rows: an account is in one list of a state and in ``all``, a lease whose access was proved in ``active``."""
    items = table().scan(ConsistentRead=True)["Items"]
    accounts = {item["pk"].partition("#")[2]: item["data"] for item in items if item["pk"].startswith("account_id#")}
    leases = {item["pk"].partition("#")[2]: item["data"] for item in items if item["pk"].startswith("lease_id#")}
    found = {state: sorted(one for one, is_in in accounts.items() if is_in == state) for state in STATES}
    found |= {"all": sorted(accounts), "active": sorted(one for one, data in leases.items() if data["state"] in ("active", "frozen"))}
    return {name: ids for name, ids in found.items() if ids}


def check_whole() -> None:
    """The lists equal the rows; each lent account has one lease, that names it, and each lease is with its person."""
    assert lists() == lists_by_rows()
    items = {item["pk"]: item for item in table().scan(ConsistentRead=True)["Items"]}
    leases = {pk.partition("#")[2]: item["data"] for pk, item in items.items() if pk.startswith("lease_id#")}
    lent = [(item["lease_id"], pk.partition("#")[2]) for pk, item in items.items() if item.get("data") == "leased"]
    assert sorted(lent) == sorted((lease_id, data["account"]) for lease_id, data in leases.items())
    held = [
        (held["lease"], held["account"], pk.partition("#")[2])
        for pk, item in items.items()
        if pk.startswith("user_id#")
        for held in item["leases"]
    ]
    assert Counter(held) == Counter((lease_id, data["account"], data["user"]) for lease_id, data in leases.items())
    for pk, item in items.items():
        if pk.startswith("user_id#"):
            assert item["data"] == item["leases"][-1]
