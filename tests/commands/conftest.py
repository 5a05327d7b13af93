"""Running a command as a terminal or a script would."""

from __future__ import annotations

import io
import json
from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial
from typing import Any

import pytest
from django.core.management import CommandError, call_command
from pytest_django.fixtures import Settings

from accessportal.audit.models import AuditItem
from accessportal.directory.models import DirectoryItem
from accessportal.mirror import operations as mirror
from accessportal.rules.models import RuleItem
from accessportal.store.base import StoreSettings, configure
from accessportal.store.cursors import configure_cursors
from accessportal.store.erasures import ErasureItem
from tests.conftest import FakeClock
from tests.fixtures_twin import REGION, plain_twin
from tests.moto_snapshots import build_once


@dataclass(frozen=True, slots=True)
class Ran:
    """What a command printed and how it ended: 0 done, 1 refused or failed, 2 bad usage. ``problem`` is its line on stderr."""

    code: int
    out: str
    problem: str

    @property
    def json(self) -> Any:
        return json.loads(self.out)

    @property
    def lines(self) -> list[str]:
        return self.out.splitlines()


def run(name: str, *arguments: str) -> Ran:
    out = io.StringIO()
    try:
        call_command(name, *arguments, stdout=out, stderr=io.StringIO())
    except CommandError as error:
        return Ran(error.returncode, out.getvalue(), str(error))
    return Ran(0, out.getvalue(), "")


@pytest.fixture
def town(clock: FakeClock, settings: Settings) -> Iterator[FakeClock]:
    """A small directory: Olga founded it, Alice is admin of /engineering, Bob reader of /engineering/payments; Mallory is in no
    group, Ana audits, Otto operates the portal and is admin of nothing."""
    mirror.configure(mirror.MirrorSettings())
    with plain_twin(clock):
        configure(StoreSettings(table_prefix="town-", region=REGION))
        configure_cursors("a-secret-for-tests-alone")
        build_once("town", partial(_build, settings))
        yield clock


def _build(settings: Settings) -> None:
    for model in (DirectoryItem, AuditItem, ErasureItem, RuleItem):
        model.create_table(wait=True)
    assert run("found_directory", "--admin", "olga@example.com", "--name", "Olga Berg").code == 0
    for group_id in ("/engineering", "/engineering/payments", "/engineering/payments/ledger", "/security"):
        by_olga("create_group", group_id, "--name", group_id.rpartition("/")[2].title())
    by_olga("create_user", "Alice@example.com", "--name", "Alice Park", "--group", "/engineering", "--role", "admin")
    by_olga("create_user", "bob@example.com", "--name", "Bob Ito", "--group", "/engineering/payments", "--role", "reader")
    by_olga("create_user", "mallory@example.com", "--name", "Mallory Moss")
    by_olga("create_user", "ana@example.com", "--name", "Ana Lima", "--group", settings.AUDITOR_GROUP, "--role", "reader")
    by_olga("create_user", "otto@example.com", "--name", "Otto Otis", "--group", settings.OPERATOR_GROUP, "--role", "reader")


def by_olga(name: str, *arguments: str) -> Ran:
    """What Olga, admin of the root, does; it must succeed."""
    told = run(name, *arguments, "--as", "olga@example.com")
    assert told.code == 0, told.problem
    return told
