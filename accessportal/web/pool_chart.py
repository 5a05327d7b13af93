"""The pool over time as a drawing: areas that stand on each other, as the paths of an SVG. Pure.

Colours and strokes belong to the style sheet. Between two counts that are too far apart nothing is drawn: nobody knows.
"""

from __future__ import annotations

import itertools
import json
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

from accessportal.kernel.clock import to_epoch

WIDTH, HEIGHT = 1000, 240
# A count is taken every five minutes; a job that comes a little late leaves no hole.
_GAP = timedelta(minutes=20)
# So wide is a count that stands alone, or it would not be seen.
_ALONE = 4
_SMALL_TOPS = (2, 4, 6, 8)
_TOPS = (10, 12, 16, 20, 24, 30, 40, 50, 60, 80)


@dataclass(frozen=True, slots=True)
class Range:
    """How far back a drawing goes. ``slots``: into how many parts it is cut, ``rows``: how many its table has."""

    name: str
    label: str
    length: timedelta
    slots: int
    rows: int
    ticks: tuple[str, ...]


RANGES = {
    one.name: one
    for one in (
        Range("24h", "24 hours", timedelta(hours=24), 144, 24, ("24 h ago", "18 h", "12 h", "6 h", "now")),
        Range("7d", "7 days", timedelta(days=7), 168, 28, ("7 d ago", "5 d", "3½ d", "2 d", "now")),
    )
}


@dataclass(frozen=True, slots=True)
class Counted:
    """How many were in each state at ``counted_at``, from the bottom of the drawing to its top: how many are free stands on the line."""

    counted_at: datetime
    counts: tuple[int, ...]

    @property
    def free(self) -> int:
        return self.counts[0]

    @property
    def total(self) -> int:
        return sum(self.counts)


@dataclass(frozen=True, slots=True)
class Band:
    """One state. ``area`` is all that it takes, ``line`` its upper edge where there is any; both empty if there never was one."""

    word: str
    area: str
    line: str


@dataclass(frozen=True, slots=True)
class Chart:
    """``top`` is the number at the upper edge. ``rows`` tell the same in figures, newest first. ``scarcest``: the fewest free.

    ``points`` are the counts that are drawn, as ``static/portal/pool-chart.js`` reads them: place, Unix seconds, and how many in
    each state.
    """

    bands: tuple[Band, ...]
    top: int
    rows: tuple[Counted, ...]
    scarcest: Counted
    points: str

    @property
    def middle(self) -> int:
        return self.top // 2


def draw(counts: Iterable[Counted], *, words: Sequence[str], spans: Range, until: datetime) -> Chart | None:
    """Draw the counts of the time before ``until``; ``None`` when there are none. ``words`` name the states. Of each slot the count with
    the fewest free is kept: an average would hide that none was."""
    since = until - spans.length
    known = sorted((one for one in counts if since <= one.counted_at <= until), key=lambda one: one.counted_at)
    if not known:
        return None
    kept = _scarcest_of_each(known, since, spans.length / spans.slots)
    top = round_top(max(one.total for one in kept))
    runs = [_Run(run, since, spans.length, top) for run in _runs(kept, max(_GAP, 3 * spans.length / spans.slots))]
    return Chart(
        bands=tuple(_band(word, number, runs) for number, word in enumerate(words)),
        top=top,
        rows=tuple(reversed(_scarcest_of_each(known, since, spans.length / spans.rows))),
        scarcest=min(reversed(known), key=lambda one: one.free),
        points=json.dumps([_point(one, since, spans.length) for one in kept], separators=(",", ":")),
    )


def round_top(most: int) -> int:
    """The smallest even round number that is not below ``most``: a scale can be read at its middle."""
    for top in _SMALL_TOPS:
        if most <= top:
            return top
    scale = 1
    while True:
        for top in _TOPS:
            if most <= top * scale:
                return top * scale
        scale *= 10


def _point(one: Counted, since: datetime, length: timedelta) -> list[float]:
    return [_place(one, since, length), to_epoch(one.counted_at), *one.counts]


def _place(one: Counted, since: datetime, length: timedelta) -> float:
    return round((one.counted_at - since) / length * WIDTH, 1)


def _scarcest_of_each(known: Sequence[Counted], since: datetime, slot: timedelta) -> list[Counted]:
    kept: dict[int, Counted] = {}
    for one in known:
        at = (one.counted_at - since) // slot
        if at not in kept or one.free < kept[at].free:
            kept[at] = one
    chosen = list(kept.values())
    # What is so now is never left out.
    return chosen if chosen[-1] is known[-1] else [*chosen, known[-1]]


def _runs(kept: Sequence[Counted], gap: timedelta) -> Iterator[list[Counted]]:
    """Stretches without a hole. What is the same as before and after is left out: it would lie on the line between them."""
    run: list[Counted] = []
    for one in kept:
        if run and one.counted_at - run[-1].counted_at > gap:
            yield _without_the_same(run)
            run = []
        run.append(one)
    yield _without_the_same(run)


def _without_the_same(run: Sequence[Counted]) -> list[Counted]:
    ends = (0, len(run) - 1)
    return [one for at, one in enumerate(run) if at in ends or not one.counts == run[at - 1].counts == run[at + 1].counts]


class _Run:
    """A stretch of counts as points: where each is, and from how high to how high each state reaches there."""

    def __init__(self, run: Sequence[Counted], since: datetime, length: timedelta, top: int) -> None:
        self.xs = [_place(one, since, length) for one in run]
        if len(run) == 1:
            self.xs, run = [max(self.xs[0] - _ALONE, 0), self.xs[0]], [*run, *run]
        self.counts = list(zip(*(one.counts for one in run), strict=True))
        reached = zip(*(itertools.accumulate(one.counts, initial=0) for one in run), strict=True)
        self.heights = [[round(HEIGHT - count / top * HEIGHT, 1) for count in counts] for counts in reached]


def _band(word: str, number: int, runs: Iterable[_Run]) -> Band:
    areas: list[str] = []
    lines: list[str] = []
    for run in runs:
        for first, last in _stretches(run.counts[number]):
            span = slice(first, last + 1)
            lower, upper = (list(zip(run.xs[span], heights[span], strict=True)) for heights in run.heights[number : number + 2])
            lines.append(_path(upper))
            areas.append(f"{_path([*upper, *reversed(lower)])}Z")
    return Band(word, "".join(areas), "".join(lines))


def _stretches(counts: Sequence[int]) -> Iterator[tuple[int, int]]:
    """First and last place of each stretch with any, with the zero on both sides: that is where it grows from and shrinks to."""
    first: int | None = None
    for at, count in enumerate(counts):
        if count and first is None:
            first = max(at - 1, 0)
        elif not count and first is not None:
            yield first, at
            first = None
    if first is not None:
        yield first, len(counts) - 1


def _path(points: Sequence[tuple[float, float]]) -> str:
    (x, y), *rest = points
    return f"M{x:g} {y:g}" + "".join(f"L{x:g} {y:g}" for x, y in rest)
