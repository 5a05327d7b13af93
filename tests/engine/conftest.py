"""Tests on Amazon's own DynamoDB Local: real conditions, real transactions, real threads. Run by ``make engine``.

A test here is marked ``engine`` by this file alone; it takes the fixture ``engine`` (or one that stands on it).
"""

from __future__ import annotations

import functools
import os
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import boto3
import pytest

from accessportal.commands.tables import ensure_all_tables
from accessportal.kernel.clock import SystemClock
from accessportal.store.base import StoreSettings, configure, current_settings, registered_models
from tests.engine.stage import Stage, stage_on

_HERE = Path(__file__).parent


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        if _HERE in item.path.parents:
            item.add_marker(pytest.mark.engine)


@pytest.fixture(scope="session")
def engine_url() -> str:
    """Where DynamoDB Local answers. Fails where it is not running."""
    url = os.environ.get("AWS_ENDPOINT_URL_DYNAMODB", "")
    if not url:
        pytest.fail("These tests need DynamoDB Local. Run them with: make engine")
    return url


@pytest.fixture(scope="session")
def built_tables(engine_url: str) -> Iterator[StoreSettings]:
    """Made once: seventeen tables with their indexes take longer than most tests."""
    with _tables() as settings:
        yield settings


@pytest.fixture
def engine(engine_url: str, built_tables: StoreSettings) -> Iterator[str]:
    """All tables, empty; yields the engine's address."""
    former = current_settings()
    configure(built_tables)
    try:
        _empty()
        yield engine_url
    finally:
        configure(former)


@functools.cache
def _database() -> Any:
    return boto3.resource("dynamodb", region_name=current_settings().region)


def _empty() -> None:
    database = _database()
    for model in registered_models():
        table = database.Table(model._get_connection().table_name)
        keys = [one.attr_name for one in model.get_attributes().values() if one.is_hash_key or one.is_range_key]
        names = {f"#k{number}": key for number, key in enumerate(keys)}
        pages = database.meta.client.get_paginator("scan").paginate(
            TableName=table.name, ProjectionExpression=", ".join(names), ExpressionAttributeNames=names, ConsistentRead=True
        )
        with table.batch_writer() as batch:
            for page in pages:
                for key in page["Items"]:
                    batch.delete_item(Key=key)


@pytest.fixture(scope="session")
def built_stage(engine_url: str) -> Iterator[tuple[Stage, StoreSettings]]:
    """Built once: it takes seconds, and a test that ends everything that it began leaves nothing to the next."""
    with _tables() as settings, stage_on(engine_url) as built:
        yield built, settings


@pytest.fixture
def stage(built_stage: tuple[Stage, StoreSettings], transactional_db: None) -> Iterator[Stage]:
    """The stories' people, 50 more approvers, and rules, on DynamoDB Local; the twin stands for the rest of AWS."""
    built, settings = built_stage
    former = current_settings()
    configure(settings)
    try:
        built.open()
        yield built
        built.end_everything()
    finally:
        configure(former)


@contextmanager
def _tables() -> Iterator[StoreSettings]:
    former = current_settings()
    settings = StoreSettings(table_prefix=f"test-{uuid.uuid4().hex[:12]}-", region=former.region)
    configure(settings)
    try:
        ensure_all_tables(clock=SystemClock())
        yield settings
    finally:
        configure(former)
