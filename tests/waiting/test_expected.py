"""When a turn is expected: from real ends and the cleanings of late, as a range, or not known."""

from __future__ import annotations

from datetime import datetime, timedelta

import pytest

from accessportal.waiting import models, operations, policy, queries
from accessportal.waiting.states import SANDBOXES, Expected
from tests.conftest import START

MINUTE = 60


def at(minutes: float) -> datetime:
    return START + timedelta(minutes=minutes)


@pytest.mark.parametrize(
    ("ahead", "ends", "cleaning", "earliest", "latest"),
    [
        pytest.param((), (30,), 300, 35, 42, id="the next that ends"),
        pytest.param((), (50, 30), 300, 35, 42, id="the nearest end"),
        pytest.param((3600,), (30, 50), 300, 55, 62, id="one before: the second end"),
        pytest.param((3600,), (30,), 300, 100, 114, id="one before has it first"),
        pytest.param((600,), (30, 120), 300, 50, 64, id="a short one before gives back soon"),
        pytest.param((600, 3600), (30, 120), 300, 115, 132, id="two before, in turns"),
        pytest.param((), (-20,), 300, 5, 12, id="over already, and being cleaned"),
        pytest.param((), (30,), 0, 30, 32, id="cleaned in no time"),
    ],
)
def test_expected(ahead: tuple[int, ...], ends: tuple[int, ...], cleaning: int, earliest: int, latest: int) -> None:
    found = policy.expected(ahead=ahead, ends=[at(end) for end in ends], cleaning_seconds=cleaning, now=START)
    assert found == Expected(at(earliest), at(latest))


def test_grace_is_in_the_latest_alone() -> None:
    found = policy.expected(ahead=(), ends=[at(30)], cleaning_seconds=60, grace_seconds=5 * MINUTE, now=START)
    assert found == Expected(at(31), at(39))


def test_not_known() -> None:
    assert policy.expected(ahead=(), ends=[at(1)], cleaning_seconds=None, now=START) is None
    assert policy.expected(ahead=(), ends=[], cleaning_seconds=60, now=START) is None
    assert policy.expected(ahead=(60,) * 1_001, ends=[at(1)], cleaning_seconds=60, now=START) is None


@pytest.mark.parametrize(("seconds", "median"), [((), None), ((60,), 60), ((10, 1000, 20), 20), ((10, 20), 15)])
def test_cleaning_of_late(seconds: tuple[int, ...], median: float | None) -> None:
    assert policy.cleaning_of_late(seconds) == median


@pytest.mark.usefixtures("tables")
def test_the_last_cleanings_are_kept() -> None:
    operations.note_cleanings(line=SANDBOXES, seconds=[10] * 30)
    operations.note_cleanings(line=SANDBOXES, seconds=[])
    operations.note_cleanings(line=SANDBOXES, seconds=[70] * 11)
    assert queries.cleaning_of_late(SANDBOXES) == 70
    assert queries.cleaning_of_late("account") is None


@pytest.mark.usefixtures("tables")
@pytest.mark.parametrize("damage", ["[60, 7", '["soon"]', "5", None])
def test_what_was_kept_of_cleanings_and_is_damaged_is_not_known_and_kept_anew(damage: str | None) -> None:
    pk, sk = models.cleanings_key(SANDBOXES)
    models.WaitingItem(pk, sk, cleanings=damage).save()
    assert queries.cleaning_of_late(SANDBOXES) is None
    operations.note_cleanings(line=SANDBOXES, seconds=[70])
    assert queries.cleaning_of_late(SANDBOXES) == 70
