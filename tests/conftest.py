"""Fixtures that every test may use. Tests tell stories with three people: Alice asks, Bob may approve, Mallory is a stranger."""

from __future__ import annotations

import gc
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta

import pytest
import time_machine
from django.conf import settings
from django.core.cache import cache
from django.db.backends.base.base import BaseDatabaseWrapper
from hypothesis import HealthCheck
from hypothesis import settings as examples

from accessportal.observe import health
from accessportal.sandboxes.operations import taking
from accessportal.tokens import operations as tokens
from accessportal.tokens.guessing import GuessLimit, KnownTokens
from tests.depth import IS_DEEP
from tests.settings import ON_POSTGRES

pytest_plugins = [
    "tests.fixtures_twin",
    "tests.fixtures_story",
    "tests.fixtures_browser",
    "tests.fixtures_provider",
    "tests.fixtures_pool",
    "tests.fixtures_accounts",
    "tests.oidc.fixtures",
    "tests.scheduling",
    "tests.chance",
]

# A busy machine makes and tries examples slowly, and that says nothing of the product. New ones are tried at night: an ordinary run always
# has the same, so that none fails with a change that has nothing to do with it.
examples.register_profile("portal", derandomize=not IS_DEEP, database=None, deadline=None, suppress_health_check=[HealthCheck.too_slow])
examples.load_profile("portal")


def pytest_collection_finish() -> None:
    """What is loaded by now stays: looking through it for garbage again and again would take a tenth of the time."""
    gc.collect()
    gc.freeze()


@pytest.fixture(scope="session")
def django_db_modify_db_settings(django_db_modify_db_settings_parallel_suffix: None, tmp_path_factory: pytest.TempPathFactory) -> None:
    """A file, as in service. In a database in memory all threads of a server for browsers share one connection and its locks. On
    PostgreSQL each worker has a database by its own name."""
    if not ON_POSTGRES:
        settings.DATABASES["default"]["TEST"]["NAME"] = str(tmp_path_factory.mktemp("database") / "portal.sqlite3")


@pytest.fixture(autouse=True)
def _nothing_is_remembered(monkeypatch: pytest.MonkeyPatch) -> None:
    """What a web process keeps in its memory (tries of passwords, what an issuer published, its health, lines of the free list) is of one
    test alone."""
    cache.clear()
    taking._kept.clear()
    health.PAGES.forget()
    health.WORK.forget()
    # Moto may take longer than a store; tests of one that hangs set what they need.
    monkeypatch.setattr(health, "STORE_SECONDS", 60.0)


@pytest.fixture(autouse=True)
def _nothing_is_queued_without_a_database(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """A change asks for jobs, and the queue is in Django's database: tests that have none lose what they ask for, as if it were down."""
    has_database = {"db", "transactional_db"}.intersection(request.fixturenames) or request.node.get_closest_marker("django_db")
    if not has_database:
        monkeypatch.setattr("accessportal.jobs.queue.async_task", lambda *_args, **_options: None)


@pytest.fixture(scope="session", autouse=True)
def _connection_of_the_test() -> Iterator[None]:
    """Jobs give old connections back when they end. A test's transaction, which is rolled back, lives in that connection."""
    close = BaseDatabaseWrapper.close_if_unusable_or_obsolete

    def close_outside(connection: BaseDatabaseWrapper) -> None:
        if not connection.in_atomic_block:
            close(connection)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(BaseDatabaseWrapper, close.__name__, close_outside)
        yield


START = datetime(2026, 3, 2, 9, 0, tzinfo=UTC)


class FakeClock:
    """A clock that moves only when told or slept on. It moves the machine's time with it (time-machine)."""

    def __init__(self, traveller: time_machine.Traveller) -> None:
        self._traveller = traveller
        self._now = START
        self.slept_seconds = 0.0

    def now(self) -> datetime:
        return self._now

    def sleep(self, seconds: float) -> None:
        if seconds > 0:
            self.slept_seconds += seconds
            self.advance(seconds)

    def advance(self, seconds: float) -> None:
        self._now += timedelta(seconds=seconds)
        self._traveller.move_to(self._now)


@pytest.fixture(autouse=True)
def wrong_tokens(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each test begins without those that earlier ones have sent: they are counted in the process's memory."""
    monkeypatch.setattr(tokens, "_guesses", GuessLimit())
    monkeypatch.setattr(tokens, "_known", KnownTokens())


@pytest.fixture
def clock() -> Iterator[FakeClock]:
    with time_machine.travel(START, tick=False) as traveller:
        yield FakeClock(traveller)
