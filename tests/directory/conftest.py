"""The directory's tables in moto, founded with Olga as its first admin."""

from __future__ import annotations

import functools
from collections.abc import Iterator
from datetime import UTC, datetime
from typing import Any

import boto3
import pytest
from moto.moto_api._internal import mock_random

from accessportal.audit.models import AuditItem
from accessportal.directory import operations
from accessportal.directory.models import DirectoryItem
from accessportal.directory.states import GroupRole
from accessportal.kernel.actors import Actor, person, system
from accessportal.mirror.operations import comparing as mirror_comparing
from accessportal.store.base import StoreSettings, configure
from accessportal.store.erasures import ErasureItem
from tests.conftest import FakeClock
from tests.fixtures_twin import Twin, plain_twin
from tests.mirror.world import World
from tests.moto_snapshots import build_once

NOW = datetime(2026, 3, 2, 9, 0, 0, 322_000, tzinfo=UTC)
SETUP: Actor = system("setup")
OLGA: Actor = person("olga@example.com")
PREFIX = "directory-"
SEED_TIME = "2022-08-10T23:55:20.322Z"


@pytest.fixture
def empty_directory() -> Iterator[None]:
    with plain_twin():
        configure(StoreSettings(table_prefix=PREFIX, region="eu-central-1"))
        build_once("empty directory", _create_tables)
        yield


def _create_tables() -> None:
    for model in (DirectoryItem, AuditItem, ErasureItem):
        model.create_table(wait=True)


@pytest.fixture
def founded(empty_directory: None) -> None:
    """The root alone, with Olga as its admin."""
    build_once("founded directory", _found)


def _found() -> None:
    operations.found_directory(admin_email="olga@example.com", admin_name="Olga", operator_group="", auditor_group="", actor=SETUP, now=NOW)


def add_person(email: str, group_id: str | None = None, role: GroupRole | None = None) -> None:
    name = email.partition("@")[0].title()
    operations.create_person(email=email, name=name, group_id=group_id, role=role, actor=OLGA, now=NOW)


def add_group(group_id: str, parent_id: str | None = None) -> None:
    operations.create_group(group_id=group_id, name=group_id, description="", parent_id=parent_id, actor=OLGA, now=NOW)


def join(email: str, group_id: str, role: GroupRole = GroupRole.READER) -> None:
    operations.grant_membership(email=email, group_id=group_id, role=role, actor=OLGA, now=NOW)


@functools.cache
def table(name: str = "AccessManagement") -> Any:
    """As other programs see it."""
    return boto3.resource("dynamodb", region_name="eu-central-1").Table(f"{PREFIX}{name}")


@pytest.fixture
def directory(founded: None) -> None:
    """Alice is admin of ``/engineering/payments``, Bob reads ``/security``, Mallory is in no group; ``/eng`` is another tree."""
    build_once("directory", _fill)


def _fill() -> None:
    for group_id in ("/engineering", "/engineering/payments", "/security", "/eng"):
        add_group(group_id)
    add_person("Alice@Example.com", "/engineering/payments", GroupRole.ADMIN)
    add_person("bob@example.com", "/security", GroupRole.READER)
    add_person("mallory@example.com")


@pytest.fixture
def world(twin: Twin, user_pool: str, clock: FakeClock, monkeypatch: pytest.MonkeyPatch) -> World:
    """A company that Cognito has followed."""
    # In the test's own thread, or one after the other: the clock stands still, and moto is not made for several at once.
    monkeypatch.setattr(mirror_comparing, "WORKERS", 1)
    made = World(twin=twin, clock=clock, pool=user_pool)
    build_once("mirrored company", made.build)
    # What tests make gets other ids than what was made then.
    mock_random.seed(2028)
    return made
