"""The drawing of the pool over time: plain tables."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

from accessportal.web.pool_chart import HEIGHT, RANGES, WIDTH, Chart, Counted, draw, round_top

NOON = datetime(2026, 3, 2, 12, 0, tzinfo=UTC)
DAY = RANGES["24h"]
WORDS = ["free", "lent", "cleaning", "stale", "quarantined"]


def counted(hours_ago: float, free: int, lent: int = 0, cleaning: int = 0, quarantined: int = 0) -> Counted:
    return Counted(NOON - timedelta(hours=hours_ago), (free, lent, cleaning, 0, quarantined))


def every_five_minutes(free: int, *, hours: float, until_hours_ago: float = 0) -> list[Counted]:
    return [counted(until_hours_ago + number / 12, free) for number in range(int(hours * 12) + 1)]


def drawn(*counts: Counted) -> Chart:
    chart = draw(counts, words=WORDS, spans=DAY, until=NOON)
    assert chart is not None
    return chart


def bands(chart: Chart) -> dict[str, tuple[str, str]]:
    return {band.word: (band.line, band.area) for band in chart.bands}


def test_areas_stand_on_each_other_free_at_the_bottom() -> None:
    chart = drawn(counted(0.25, 5, 5), counted(0, 10, 0))

    found = bands(chart)
    assert list(found) == WORDS
    assert chart.top == 10
    assert found["free"] == ("M989.6 120L1000 0", "M989.6 120L1000 0L1000 240L989.6 240Z")
    assert found["lent"] == ("M989.6 0L1000 0", "M989.6 0L1000 0L1000 0L989.6 120Z")
    assert found["cleaning"] == found["stale"] == found["quarantined"] == ("", "")


def test_a_day_of_the_same_is_one_line() -> None:
    chart = drawn(*every_five_minutes(6, hours=24))

    assert bands(chart)["free"][0] == f"M0 0L{WIDTH} 0"


def test_nothing_is_drawn_where_nobody_counted() -> None:
    chart = drawn(*every_five_minutes(6, hours=1, until_hours_ago=20), *every_five_minutes(6, hours=1))

    line = bands(chart)["free"][0]
    assert line.count("M") == 2
    assert line.startswith("M125 0L166.7 0M")


def test_a_count_alone_is_seen() -> None:
    assert bands(drawn(counted(12, 4)))["free"] == ("M496 0L500 0", f"M496 0L500 0L500 {HEIGHT}L496 {HEIGHT}Z")
    assert bands(drawn(counted(24, 4)))["free"][0] == "M0 0L0 0"


def test_a_status_that_comes_and_goes_is_drawn_where_it_is() -> None:
    chart = drawn(*(counted(1 - number / 6, 4, quarantined=count) for number, count in enumerate((0, 0, 0, 2, 0, 0, 0))))

    line, area = bands(chart)["quarantined"]
    assert line == "M972.2 80L979.2 0L986.1 80"
    assert area.endswith("L986.1 80L979.2 80L972.2 80Z")


def test_the_moment_without_a_free_one_is_never_averaged_away() -> None:
    counts = [counted(6 + minute / 60, 0 if minute == 4 else 8, 8 if minute == 4 else 0) for minute in range(10)]
    chart = drawn(*counts, counted(5.9, 8))

    assert chart.scarcest.counted_at == NOON - timedelta(hours=6, minutes=4)
    assert f" {HEIGHT}L" in bands(chart)["free"][0]
    assert chart.rows[-1] is chart.scarcest


def test_the_table_has_a_row_for_each_hour_newest_first() -> None:
    rows = drawn(*every_five_minutes(3, hours=24)).rows

    assert len(rows) == 25
    assert rows[0].counted_at == NOON
    assert list(rows) == sorted(rows, key=lambda row: row.counted_at, reverse=True)


@pytest.mark.parametrize("counts", [[], [counted(25, 3)], [counted(-1, 3)]])
def test_without_counts_of_this_time_there_is_no_drawing(counts: list[Counted]) -> None:
    assert draw(counts, words=WORDS, spans=DAY, until=NOON) is None


@pytest.mark.parametrize(
    ("most", "top"),
    [
        (0, 2),
        (1, 2),
        (3, 4),
        (8, 8),
        (9, 10),
        (11, 12),
        (17, 20),
        (25, 30),
        (81, 100),
        (500, 500),
        (501, 600),
        (1001, 1200),
        (99_999, 100_000),
    ],
)
def test_a_scale_ends_at_a_round_number_with_a_middle(most: int, top: int) -> None:
    assert round_top(most) == top
    assert top % 2 == 0


def test_an_empty_pool_is_drawn_as_nothing() -> None:
    chart = drawn(counted(1, 0), counted(0, 0))

    assert all(not band.area for band in chart.bands)


def test_a_week_of_counts_makes_a_small_drawing() -> None:
    counts = [Counted(NOON - timedelta(minutes=5 * n), (n * 7 % 501, 500 - n * 7 % 501, 0, 0, 0)) for n in range(2016)]
    chart = draw(counts, words=WORDS, spans=RANGES["7d"], until=NOON)

    assert chart is not None
    assert sum(len(band.area) + len(band.line) for band in chart.bands) < 20_000
    assert len(chart.rows) <= RANGES["7d"].rows + 1
