"""What a newer version of the portal has written, met by this one: left alone and named, and everything else goes on."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import boto3
import pytest
from pynamodb.attributes import NumberAttribute

from accessportal.access_requests.models import RequestItem
from accessportal.access_requests.states import Status
from accessportal.directory import queries as directory
from accessportal.directory.models import DirectoryItem
from accessportal.kernel.errors import Conflict, Unavailable
from accessportal.rules import operations as rules_operations
from accessportal.rules import queries as rules
from accessportal.rules import store as rules_store
from accessportal.rules.models import CURRENT, SET_KEY, RuleItem
from accessportal.sandboxes import models
from accessportal.sandboxes import operations as sandboxes
from accessportal.sandboxes import queries as pool_queries
from accessportal.sandboxes.models import SandboxItem
from accessportal.sandboxes.states import Status as PoolStatus
from accessportal.sandboxes.states import Unreadable as UnreadableSandbox
from accessportal.store.base import PortalModel, registered_models
from accessportal.store.coordination import CoordinationItem
from accessportal.store.reading import get_item, query_page
from accessportal.store.transactions import Change, ConditionFailed, Guard, Insert, Remove, Upsert, transact, update_one
from tests.fixtures_story import RULES, Story
from tests.fixtures_twin import REGION
from tests.portal.conftest import SignedIn, signed_in
from tests.sandboxes.conftest import Pool, asked_of_the_queue, pool

__all__ = ["asked_of_the_queue", "pool", "signed_in"]
Raw = dict[str, Any]
NEWER = PortalModel.known_schema + 1
UNTIL = CoordinationItem.until


def client() -> Any:
    return boto3.client("dynamodb", region_name=REGION)


def every_item() -> Iterator[tuple[str, Raw]]:
    for model in registered_models():
        for item in client().scan(TableName=model.base_table_name)["Items"]:
            yield model.base_table_name, item


def plant(model: Any, keys: Raw, **changed: Raw) -> Raw:
    """A copy of the item with ``keys``, changed as a newer version may have."""
    table = model.base_table_name
    copy = {**client().get_item(TableName=table, Key=keys)["Item"], **changed}
    client().put_item(TableName=table, Item=copy)
    return copy


def test_every_item_says_which_version_can_read_it(story: Story, pool: Pool) -> None:
    pool.fill(1)
    story.carry_out(story.ask())
    story.tick()

    items = list(every_item())

    assert {table for table, _ in items} >= {"ActiveRequests", "Assignments", "AuditLog", "AccessRules", "AccessManagement", "Coordination"}
    assert {(table, item.get("schema_version", {}).get("N")) for table, item in items} == {(table, "1") for table, _ in items}
    assert all(isinstance(model.schema_version, NumberAttribute) for model in registered_models())


@pytest.mark.usefixtures("tables")
def test_no_write_touches_an_item_of_a_newer_version() -> None:
    planted = {"name": {"S": "one"}, "until": {"N": "1"}, "schema_version": {"N": str(NEWER)}}
    client().put_item(TableName="Coordination", Item=planted)

    for step in (
        Change(CoordinationItem, "one", [UNTIL.set(2)], UNTIL == 1),
        Upsert(CoordinationItem, "one", [UNTIL.set(2)], UNTIL == 1),
        Remove(CoordinationItem, "one", UNTIL == 1),
    ):
        with pytest.raises(ConditionFailed):
            transact([step])
        if not isinstance(step, Remove):
            with pytest.raises(ConditionFailed):
                update_one(step)
    with pytest.raises(Unavailable, match="newer version"):
        get_item(CoordinationItem, "one")
    page = query_page(CoordinationItem, "one", pattern="x", convert=str)
    assert (page.items, [one.is_newer for one in page.unreadable]) == ((), [True])
    # A look at it decides nothing about it.
    transact([Guard(CoordinationItem, "one", UNTIL == 1), Insert(CoordinationItem("two", until=1))])
    assert client().get_item(TableName="Coordination", Key={"name": {"S": "one"}})["Item"] == planted


@pytest.mark.parametrize("changed", [{"kind": {"S": "spaceship"}}, {"schema_version": {"N": str(NEWER)}}], ids=["kind", "schema"])
def test_a_request_of_a_newer_version_is_left_to_it_and_the_others_end(story: Story, changed: Raw) -> None:
    ended = story.carry_out(story.ask(seconds=60))
    planted = [
        plant(RequestItem, {"request_id": {"S": ended.request_id}}, request_id={"S": "newer-1"}, **changed),
        plant(
            RequestItem,
            {"request_id": {"S": ended.request_id}},
            request_id={"S": "newer-2"},
            work={"S": "GRANT"},
            work_due_at={"N": "1"},
            **changed,
        ),
    ]
    story.clock.advance(60)

    report = story.tick()

    assert story.now_of(ended).status is Status.REVOKED
    assert {one.item for one in report.failures} == {"newer-1", "newer-2"}
    assert all("made by a newer version" in one.error for one in report.failures)
    for item in planted:
        assert client().get_item(TableName="ActiveRequests", Key={"request_id": item["request_id"]})["Item"] == item


def test_a_person_of_a_newer_version_is_named_and_nobody_else_is_in_their_way(story: Story) -> None:
    key = {"pk": {"S": "U:mallory@example.com"}, "sk": {"S": "U:mallory@example.com"}}
    plant(DirectoryItem, key, schema_version={"N": str(NEWER)})

    with pytest.raises(Unavailable, match="made by a newer version"):
        directory.find_person(email="mallory@example.com")
    page = directory.list_people(cursor=None, limit=50)
    assert "alice@example.com" in {one.key for one in page.items}
    assert [one.is_newer for one in page.unreadable] == [True]


def test_a_sandbox_of_a_newer_version_is_neither_lent_nor_cleaned(pool: Pool) -> None:
    newer, other = pool.fill(2)
    pk, sk = models.sandbox_key(newer.sandbox_id)
    planted = plant(SandboxItem, {"PK": {"S": pk}, "SK": {"S": sk}}, schema_version={"N": str(NEWER)})

    taken = pool.take("track-1")

    assert taken.sandbox.sandbox_id == other.sandbox_id
    with pytest.raises(Unavailable, match="made by a newer version"):
        pool_queries.get(sandbox_id=newer.sandbox_id)
    assert any(isinstance(one, UnreadableSandbox) for one in pool_queries.list_by_status(status=PoolStatus.AVAILABLE).items)
    assert client().get_item(TableName="SandboxPool", Key={"PK": {"S": pk}, "SK": {"S": sk}})["Item"] == planted
    assert not sandboxes.expire(clock=pool.clock).failures


def plant_rule(kind: str) -> None:
    """A newer version's set: one rule more, of ``kind``."""
    pointer = get_item(RuleItem, SET_KEY, CURRENT)
    assert pointer is not None
    key = {"rule_name": {"S": SET_KEY}, "version": {"N": f"{pointer.current_version:.0f}"}}
    entries = client().get_item(TableName="AccessRules", Key=key)["Item"]["entries"]["L"]
    entry = {"name": {"S": "launch"}, "version": {"N": "1"}, "hash": {"S": "0"}, "kind": {"S": kind}}
    plant(RuleItem, key, entries={"L": [{"M": entry}, *entries]})
    rules_store._cached = None


@pytest.mark.django_db
def test_a_rule_of_a_kind_that_is_not_known_hinders_no_other(story: Story, signed_in: SignedIn) -> None:
    names = [rule.name for rule in rules.current_rules()]
    plant_rule("spaceship")

    assert [rule.name for rule in rules.current_rules()] == names
    assert [(one.key, one.is_newer, "spaceship" in one.why) for one in rules.current_set().newer] == [("launch", True, True)]
    assert story.carry_out(story.ask()).is_granted
    page = signed_in("ana").get("/admin/rules/").content.decode()
    assert "launch" in page
    assert "made by a newer version" in page
    with pytest.raises(Conflict, match="launch") as refused:
        rules_operations.apply_rules(text=RULES.replace("max: 4h", "max: 5h"), actor=story.olga, now=story.clock.now())
    assert refused.value.code == "rules_newer"


def test_a_rule_of_a_known_kind_is_never_left_out(story: Story) -> None:
    """Its kind in the list of the set counts; what stands in the rule itself is nobody's word."""
    plant(RuleItem, {"rule_name": {"S": "security-accounts"}, "version": {"N": "1"}}, kind={"S": "spaceship"})
    rules_store._cached = None
    with pytest.raises(Unavailable, match="missing or was changed"):
        rules.current_rules()

    plant(RuleItem, {"rule_name": {"S": "security-accounts"}, "version": {"N": "1"}}, schema_version={"N": str(NEWER)})
    with pytest.raises(Unavailable, match="Update this process"):
        rules.current_rules()
