"""Tests on Amazon's own DynamoDB Local: real conditions, real transactions, real threads. Run by ``make engine``.

A test here is marked ``engine`` by this file alone; it takes the fixture ``engine`` (or one that stands on it).
"""

from __future__ import annotations

import os
import uuid
from collections.abc import Iterator
from pathlib import Path

import pytest

from accessportal.commands.tables import ensure_all_tables
from accessportal.kernel.clock import SystemClock
from accessportal.store.base import StoreSettings, configure, current_settings

_HERE = Path(__file__).parent


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        if _HERE in item.path.parents:
            item.add_marker(pytest.mark.engine)


@pytest.fixture
def engine() -> Iterator[str]:
    """All tables, empty, in DynamoDB Local under a prefix of their own; yields its address. Fails where it is not running."""
    url = os.environ.get("AWS_ENDPOINT_URL_DYNAMODB", "")
    if not url:
        pytest.fail("These tests need DynamoDB Local. Run them with: make engine")
    former = current_settings()
    configure(StoreSettings(table_prefix=f"test-{uuid.uuid4().hex[:12]}-", region=former.region))
    try:
        ensure_all_tables(clock=SystemClock())
        yield url
    finally:
        configure(former)
