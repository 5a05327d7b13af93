"""When a pool runs dry: plain tables."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

from accessportal.web.pool_forecast import Forecast, Supply, forecast, pace

NOON = datetime(2026, 3, 2, 12, 0, tzinfo=UTC)


def hours(*numbers: float) -> tuple[datetime, ...]:
    return tuple(NOON + timedelta(hours=number) for number in numbers)


@pytest.mark.parametrize(
    ("free", "comes_back", "a_day", "dry_in_hours"),
    [
        pytest.param(2, (), 24, 2, id="two last two hours when one goes each hour"),
        pytest.param(2, (1.5,), 24, 3, id="what comes back in time adds an hour"),
        pytest.param(2, (2.5,), 24, 2, id="what comes back too late does not"),
        pytest.param(1, (0.5, 1.5, 9), 24, 3, id="returns are told in their order"),
        pytest.param(1, (9, 1.5, 0.5), 24, 3, id="whatever order they are given in"),
        pytest.param(1, (-3,), 24, 2, id="what is over already comes back now"),
        pytest.param(1, (), 0.05, None, id="beyond the horizon nobody knows"),
        pytest.param(3, (1, 2), 0, None, id="nobody asks"),
        pytest.param(1, tuple(range(400)), 24, None, id="as many come back as go"),
    ],
)
def test_when_it_runs_dry(free: int, comes_back: tuple[float, ...], a_day: float, dry_in_hours: float | None) -> None:
    found = forecast(Supply(free, 0, hours(*comes_back)), a_day=a_day, now=NOON)

    dry_at = None if dry_in_hours is None else NOON + timedelta(hours=dry_in_hours)
    assert found == Forecast(is_dry=False, a_day=a_day, dry_at=dry_at)


@pytest.mark.parametrize(
    ("free", "waiting", "comes_back", "free_in_hours"),
    [
        pytest.param(0, 0, (5, 2), 2, id="the next that comes back"),
        pytest.param(0, 2, (5, 2, 9, 7), 7, id="after those who wait"),
        pytest.param(1, 2, (5, 2, 9), 5, id="one of them gets the free one"),
        pytest.param(2, 2, (4,), 4, id="what is free is for those who wait"),
        pytest.param(0, 3, (2, 5), None, id="not enough comes back"),
        pytest.param(0, 0, (24 * 15,), None, id="it comes back too far away"),
        pytest.param(0, 0, (), None, id="nothing comes back"),
    ],
)
def test_when_a_dry_pool_has_one_again(free: int, waiting: int, comes_back: tuple[float, ...], free_in_hours: float | None) -> None:
    found = forecast(Supply(free, waiting, hours(*comes_back)), a_day=3, now=NOON)

    free_at = None if free_in_hours is None else NOON + timedelta(hours=free_in_hours)
    assert found == Forecast(is_dry=True, a_day=3, free_at=free_at)


def test_without_a_pace_nothing_is_told() -> None:
    assert forecast(Supply(3, 0, ()), a_day=None, now=NOON) is None


@pytest.mark.parametrize(
    ("handed_out", "a_day"),
    [
        pytest.param([], None, id="no counts"),
        pytest.param([(0, 7)], None, id="one count"),
        pytest.param([(0, 7), (5.9, 9)], None, id="too short"),
        pytest.param([(0, 7), (12, 2)], 4, id="two in half a day"),
        pytest.param([(0, 0), (12, 0), (24, 0)], 0, id="none"),
        pytest.param([(0, 9), (12, 1), (24, 2)], 3, id="what was before the first is not counted"),
    ],
)
def test_how_many_go_a_day(handed_out: list[tuple[float, int]], a_day: float | None) -> None:
    assert pace([(NOON + timedelta(hours=at), count) for at, count in handed_out]) == a_day
