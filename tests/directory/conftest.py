"""The directory's tables in moto, and an operator to fill them."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime

import pytest
from moto import mock_aws

from accessportal.audit.models import AuditItem
from accessportal.directory import operations
from accessportal.directory.models import DirectoryItem
from accessportal.directory.states import GroupRole
from accessportal.kernel.actors import Actor, Role, person
from accessportal.store.base import StoreSettings, configure

NOW = datetime(2026, 3, 2, 9, 0, 0, 322_000, tzinfo=UTC)
OLGA: Actor = person("olga@example.com", roles=frozenset({Role.OPERATOR}))
PREFIX = "directory-"


@pytest.fixture
def empty_directory() -> Iterator[None]:
    with mock_aws():
        configure(StoreSettings(table_prefix=PREFIX, region="eu-central-1"))
        for model in (DirectoryItem, AuditItem):
            model.create_table(wait=True)
        yield


def add_person(email: str) -> None:
    operations.create_person(email=email, name=email.partition("@")[0].title(), actor=OLGA, now=NOW)


def add_group(group_id: str) -> None:
    operations.create_group(group_id=group_id, name=group_id, description="", actor=OLGA, now=NOW)


def join(email: str, group_id: str, role: GroupRole = GroupRole.READER) -> None:
    operations.grant_membership(email=email, group_id=group_id, role=role, actor=OLGA, now=NOW)


@pytest.fixture
def directory(empty_directory: None) -> None:
    """Alice is in ``/engineering/payments``, Bob in ``/security``, Mallory in no group; ``/eng`` is another tree."""
    for email in ("Alice@Example.com", "bob@example.com", "mallory@example.com"):
        add_person(email)
    for group_id in ("/engineering", "/engineering/payments", "/security", "/eng"):
        add_group(group_id)
    join("alice@example.com", "/engineering/payments", GroupRole.ADMIN)
    join("bob@example.com", "/security")
