"""Fixtures that every test may use. Tests tell stories with three people: Alice asks, Bob may approve, Mallory is a stranger."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta

import pytest
import time_machine

pytest_plugins = [
    "tests.fixtures_twin",
    "tests.fixtures_story",
    "tests.fixtures_browser",
    "tests.fixtures_provider",
    "tests.fixtures_pool",
    "tests.oidc.fixtures",
    "tests.scheduling",
]

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


@pytest.fixture
def clock() -> Iterator[FakeClock]:
    with time_machine.travel(START, tick=False) as traveller:
        yield FakeClock(traveller)
