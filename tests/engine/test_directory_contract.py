"""The table contract of seed 001 on Amazon's engine: each access pattern done here, then read by plain boto3 with the seed's own
keys and expressions, as another program reads it."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime
from typing import Any

import boto3
import pytest

from accessportal.audit import queries as audit
from accessportal.directory import operations
from accessportal.directory.states import GroupRole, State
from accessportal.kernel.actors import person
from tests.engine.whole_directory import Checker, every_item, found_directory, table

NOW = datetime(2026, 3, 2, 9, 0, 0, 322_000, tzinfo=UTC)
LATER = datetime(2026, 3, 3, 10, 30, tzinfo=UTC)
AT, THEN = "2026-03-02T09:00:00.322Z", "2026-03-03T10:30:00.000Z"
OLGA = person("olga@example.com")
ALICE, BOB = "alice@example.com", "bob@example.com"
USA, NORTHWEST, SOUTH = "/usa", "/usa/northwest", "/usa/south"
# What is ours, besides the seed's attributes.
OURS = {
    "U": {"displayName", "version", "audit_head"},
    "G": {"memberCount", "childCount", "ancestors", "treeVersion", "admins", "version", "audit_head"},
    "M": {"siKey1", "claims"},
    "GH": {"createdAt", "createdBy"},
}


@pytest.fixture(autouse=True)
def _usa(engine: str) -> Iterator[None]:
    """The seed's example. Alice is admin of the north-west, Bob reads there and in the south."""
    found_directory(now=NOW)
    for group_id, name in {USA: "USA", NORTHWEST: "Northwest", SOUTH: "South"}.items():
        operations.create_group(group_id=group_id, name=name, description=f"{name} group", actor=OLGA, now=NOW)
    _come("Alice@Example.com", NORTHWEST, GroupRole.ADMIN)
    _come(BOB, NORTHWEST, GroupRole.READER)
    operations.grant_membership(email=BOB, group_id=SOUTH, role=GroupRole.READER, actor=OLGA, now=NOW)
    yield
    Checker().check()


def _come(email: str, group_id: str, role: GroupRole) -> None:
    operations.create_person(email=email, name=email.partition("@")[0].title(), group_id=group_id, role=role, actor=OLGA, now=NOW)


def _get(pk: str, sk: str) -> dict[str, Any] | None:
    """The seed's GetCommand."""
    item: dict[str, Any] | None = table().get_item(Key={"pk": pk, "sk": sk}).get("Item")
    return item


def _seeds(pk: str, sk: str, kind: str) -> dict[str, Any]:
    """The item as the seed has it: what is ours is there too, and left out here."""
    item = _get(pk, sk)
    assert item is not None
    assert item.keys() >= OURS[kind] - {"admins"}
    return {name: value for name, value in item.items() if name not in OURS[kind] | {"schema_version"}}


def _query(expression: str, *, index: str = "siKey1-pk-index", **values: str) -> list[dict[str, Any]]:
    where = {"IndexName": index} if index else {}
    answer = table().query(
        KeyConditionExpression=expression, ExpressionAttributeValues={f":{name}": value for name, value in values.items()}, **where
    )
    found: list[dict[str, Any]] = answer["Items"]
    return found


def _children(group_id: str) -> dict[str, str]:
    """The seed's "List child groups": step 1 finds the ids, step 2 retrieves the definitions. Id to name."""
    branches = _query("siKey1 = :kind AND pk = :pk", kind="GH", pk=f"G:{group_id}")
    keys = [{"pk": {"S": branch["sk"]}, "sk": {"S": branch["sk"]}} for branch in branches]
    if not keys:
        return {}
    client = boto3.client("dynamodb", region_name="eu-central-1")
    answer = client.batch_get_item(RequestItems={table().name: {"Keys": keys}})
    assert answer["UnprocessedKeys"] == {}
    return {item["id"]["S"]: item["name"]["S"] for item in answer["Responses"][table().name]}


def _events(entity: str) -> list[str]:
    return [event.action for event in audit.history(entity, newest_first=False).items]


def test_the_table_and_its_only_index() -> None:
    client = boto3.client("dynamodb", region_name="eu-central-1")
    described = client.describe_table(TableName=table().name)["Table"]
    assert described["KeySchema"] == [{"AttributeName": "pk", "KeyType": "HASH"}, {"AttributeName": "sk", "KeyType": "RANGE"}]
    (index,) = described["GlobalSecondaryIndexes"]
    assert index["IndexName"] == "siKey1-pk-index"
    assert index["KeySchema"] == [{"AttributeName": "siKey1", "KeyType": "HASH"}, {"AttributeName": "pk", "KeyType": "RANGE"}]
    assert index["Projection"] == {"ProjectionType": "ALL"}


def test_create_and_retrieve_a_group() -> None:
    assert _seeds(f"G:{NORTHWEST}", f"G:{NORTHWEST}", "G") == {
        "pk": "G:/usa/northwest",
        "sk": "G:/usa/northwest",
        "siKey1": "G",
        "id": "/usa/northwest",
        "name": "Northwest",
        "description": "Northwest group",
        "state": "enabled",
        "createdAt": AT,
        "createdBy": "olga@example.com",
        "updatedAt": AT,
        "updatedBy": "olga@example.com",
    }
    assert _seeds(f"G:{USA}", f"G:{NORTHWEST}", "GH") == {"pk": "G:/usa", "sk": "G:/usa/northwest", "siKey1": "GH"}
    assert _events(f"group#{NORTHWEST}") == ["group.created"]


def test_list_child_groups() -> None:
    assert _children(USA) == {NORTHWEST: "Northwest", SOUTH: "South"}
    assert _children("/") == {USA: "USA"}
    assert _children(SOUTH) == {}

    operations.move_group(group_id=NORTHWEST, parent_id=SOUTH, actor=OLGA, now=LATER)

    assert _children(USA) == {SOUTH: "South"}
    assert _children(SOUTH) == {NORTHWEST: "Northwest"}


def test_change_a_group() -> None:
    operations.rename_group(group_id=SOUTH, name="Deep South", description="", actor=OLGA, now=LATER)
    operations.set_group_state(group_id=SOUTH, state=State.DISABLED, actor=OLGA, now=LATER)

    item = _seeds(f"G:{SOUTH}", f"G:{SOUTH}", "G")

    assert {name: item[name] for name in ("name", "description", "state")} == {"name": "Deep South", "description": "", "state": "disabled"}
    assert (item["createdAt"], item["updatedAt"]) == (AT, THEN)
    assert _children(USA) == {NORTHWEST: "Northwest", SOUTH: "Deep South"}


def test_delete_a_group() -> None:
    operations.revoke_membership(email=BOB, group_id=SOUTH, actor=OLGA, now=LATER)
    operations.delete_group(group_id=SOUTH, actor=OLGA, now=LATER)

    # But for the note that whoever held something by it is to be looked at.
    assert [item["pk"] for item in every_item() if SOUTH in item["pk"] + item["sk"]] == [f"D:G:{SOUTH}"]
    assert _children(USA) == {NORTHWEST: "Northwest"}
    assert _events(f"group#{SOUTH}") == ["group.created", "group.deleted"]


def test_create_a_user() -> None:
    assert _seeds(f"U:{ALICE}", f"U:{ALICE}", "U") == {
        "pk": "U:alice@example.com",
        "sk": "U:alice@example.com",
        "siKey1": "U",
        "email": "Alice@Example.com",
        "state": "enabled",
        "createdAt": AT,
        "createdBy": "olga@example.com",
        "updatedAt": AT,
        "updatedBy": "olga@example.com",
    }
    assert _events(f"person#{ALICE}") == ["user.created", "user.granted"]


def test_disable_and_enable_a_user() -> None:
    for state in (State.DISABLED, State.ENABLED):
        operations.set_person_state(email=BOB, state=state, actor=OLGA, now=LATER)
        item = _seeds(f"U:{BOB}", f"U:{BOB}", "U")
        assert (item["state"], item["createdAt"], item["updatedAt"]) == (state.value, AT, THEN)


def test_grant_a_user_access_to_a_group_and_change_the_role() -> None:
    seeds = {"pk": f"U:{BOB}", "sk": f"G:{NORTHWEST}", "role": "reader", "createdAt": AT, "createdBy": "olga@example.com"}
    assert _seeds(f"U:{BOB}", f"G:{NORTHWEST}", "M") == seeds

    operations.grant_membership(email=BOB, group_id=NORTHWEST, role=GroupRole.CONTRIBUTOR, actor=person(ALICE), now=LATER)

    assert _seeds(f"U:{BOB}", f"G:{NORTHWEST}", "M") == seeds | {"role": "contributor"}
    assert _events(f"person#{BOB}") == ["user.created", "user.granted", "user.granted", "user.role_changed"]


def test_revoke_a_users_access_and_with_the_last_the_user() -> None:
    operations.revoke_membership(email=BOB, group_id=NORTHWEST, actor=OLGA, now=LATER)
    assert _get(f"U:{BOB}", f"G:{NORTHWEST}") is None
    assert _get(f"U:{BOB}", f"U:{BOB}") is not None

    operations.revoke_membership(email=BOB, group_id=SOUTH, actor=OLGA, now=LATER)

    assert _query("pk = :pk", index="", pk=f"U:{BOB}") == []
    assert _events(f"person#{BOB}")[-3:] == ["user.revoked", "user.revoked", "user.deleted"]


def test_delete_a_user() -> None:
    operations.delete_person(email=BOB, actor=OLGA, now=LATER)

    assert _query("pk = :pk", index="", pk=f"U:{BOB}") == []
    assert [item["pk"] for item in _query("siKey1 = :kind", kind="U")] == [f"U:{ALICE}", "U:olga@example.com"]
    assert _events(f"person#{BOB}")[-1] == "user.deleted"


def test_list_members_and_a_persons_groups() -> None:
    members = _query("siKey1 = :kind", kind=f"M:{NORTHWEST}")
    assert [(item["pk"], item["role"]) for item in members] == [(f"U:{ALICE}", "admin"), (f"U:{BOB}", "reader")]

    groups = _query("pk = :pk AND begins_with(sk, :kind)", index="", pk=f"U:{BOB}", kind="G:")
    assert [item["sk"] for item in groups] == [f"G:{NORTHWEST}", f"G:{SOUTH}"]


@pytest.mark.parametrize(
    ("kind", "found"),
    [
        ("U", [("U:alice@example.com",) * 2, ("U:bob@example.com",) * 2, ("U:olga@example.com",) * 2]),
        ("G", [("G:/",) * 2, ("G:/usa",) * 2, ("G:/usa/northwest",) * 2, ("G:/usa/south",) * 2]),
        ("GH", [("G:/", "G:/usa"), ("G:/usa", "G:/usa/northwest"), ("G:/usa", "G:/usa/south")]),
    ],
)
def test_every_item_of_a_kind_and_no_other(kind: str, found: list[tuple[str, str]]) -> None:
    assert sorted((item["pk"], item["sk"]) for item in _query("siKey1 = :kind", kind=kind)) == found
