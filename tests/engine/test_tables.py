"""``create_tables`` on Amazon's engine."""

from __future__ import annotations

import secrets
from collections.abc import Iterator
from typing import Any

import pytest

from accessportal.access_requests import queries
from accessportal.access_requests.models import RequestItem
from accessportal.kernel.actors import person
from accessportal.kernel.clock import SystemClock
from accessportal.store.base import connection, registered_models
from accessportal.store.tables import _wanted, ensure_table, silent_tables
from tests.access_requests.old_items import OLD_ITEMS, OLD_TABLE

# The engine takes most of a minute for each index that is added, and nothing but their keys tells the others from these.
ADDED = {"RequesterIndex", "EndedIndex", "RuleIndex"}


def test_all_tables_answer_and_making_them_again_changes_nothing(engine: str) -> None:
    assert silent_tables() == {}
    for model in registered_models():
        report = ensure_table(model, clock=SystemClock())
        assert not report.created
        assert report.added_indexes == ()


@pytest.fixture
def old_requests(engine: str, monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    """The table of version 0.3 under a name of its own, with what it held, and all indexes of now but those that are to be added."""
    name = f"{secrets.token_hex(4)}-ActiveRequests"
    client: Any = connection().client
    had = OLD_TABLE["GlobalSecondaryIndexes"]
    others = ADDED | {index["IndexName"] for index in had}
    indexes = [*had, *(index for index in _wanted(RequestItem)["GlobalSecondaryIndexes"] if index["IndexName"] not in others)]
    attributes = {part["AttributeName"] for index in (OLD_TABLE, *indexes) for part in index["KeySchema"]}
    definitions = [one for one in _wanted(RequestItem)["AttributeDefinitions"] if one["AttributeName"] in attributes]
    client.create_table(TableName=name, **OLD_TABLE | {"GlobalSecondaryIndexes": indexes, "AttributeDefinitions": definitions})
    for item in OLD_ITEMS:
        client.put_item(TableName=name, Item=item)
    monkeypatch.setattr(RequestItem.Meta, "table_name", name)
    monkeypatch.setattr(RequestItem, "_connection", None)
    yield name
    client.update_table(TableName=name, DeletionProtectionEnabled=False)
    client.delete_table(TableName=name)


@pytest.mark.slow
def test_indexes_come_to_the_table_of_the_version_before_and_find_what_it_holds(old_requests: str) -> None:
    report = ensure_table(RequestItem, clock=SystemClock())

    assert set(report.added_indexes) == ADDED
    alice = person("alice@example.com")
    assert [one.request_id for one in queries.list_mine(actor=alice).items] == ["open", "denied"]
    assert [one.request_id for one in queries.list_ended(requested_by=alice.name).items] == ["denied"]
