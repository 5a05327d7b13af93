"""The tables of the rules and the directory in moto."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from accessportal.audit.models import AuditItem
from accessportal.directory import operations as directory
from accessportal.directory.models import DirectoryItem
from accessportal.directory.states import GroupRole
from accessportal.kernel.actors import system
from accessportal.rules.models import RuleItem
from accessportal.store.base import StoreSettings, configure
from accessportal.store.erasures import ErasureItem
from tests.fixtures_twin import plain_twin
from tests.moto_snapshots import build_once
from tests.rules.stories import NOW, OLGA

MEMBERS = {
    "alice@example.com": "/engineering/payments",
    "paul@example.com": "/engineering/payments",
    "erin@example.com": "/engineering",
    "bob@example.com": "/security",
    "sam@example.com": "/security",
}


@pytest.fixture
def tables() -> Iterator[None]:
    with plain_twin():
        configure(StoreSettings(table_prefix="rules-", region="eu-central-1"))
        build_once("tables of rules", _create_tables)
        yield


def _create_tables() -> None:
    for model in (RuleItem, DirectoryItem, AuditItem, ErasureItem):
        model.create_table(wait=True)


@pytest.fixture
def people(tables: None) -> None:
    """Olga admin of the root; Alice and Paul in ``/engineering/payments``, Erin in ``/engineering``, Bob and Sam in ``/security``."""
    build_once("people of rules", _add_people)


def _add_people() -> None:
    directory.found_directory(admin_email=OLGA.name, admin_name="Olga", operator_group="", auditor_group="", actor=system("setup"), now=NOW)
    for group_id in ("/engineering", "/engineering/payments", "/security"):
        directory.create_group(group_id=group_id, name=group_id, description="", actor=OLGA, now=NOW)
    for email, group_id in MEMBERS.items():
        name = email.partition("@")[0].title()
        directory.create_person(email=email, name=name, group_id=group_id, role=GroupRole.READER, actor=OLGA, now=NOW)
