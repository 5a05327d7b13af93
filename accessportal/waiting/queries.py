"""Reads of the lines, and the guards that other rooms put into their transactions."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Sequence
from datetime import datetime
from functools import partial

import structlog

from accessportal.kernel.pages import Unreadable, UnreadableItem
from accessportal.waiting import policy, store
from accessportal.waiting.states import Expected, Line, LineWithPlaces, Place, Standing, Turn

log = structlog.get_logger(__name__)
get_line = store.get_line
item_of_place = store.item_of_place
places = store.places
nobody_waits = store.nobody_waits
has_not_moved = store.has_not_moved


def get_with_places(line: str, *, past: Callable[[Unreadable], object]) -> LineWithPlaces:
    """The line with all that are in it, strongly read. For checks, not for pages."""
    return LineWithPlaces(get_line(line), tuple(places(line, past=past)))


def find(*, line: str, claim: str, compete: Callable[[Place, Place], bool] = lambda _own, _other: True) -> Standing | None:
    """The place of ``claim`` and who is before it, of those that ``compete`` with it for the same, strongly read; ``None``: it is not in
    the line."""
    place = store.find(line, claim)
    if place is None:
        return None
    before = (one for one in places(line, before=place.number, past=pass_over) if _does_fit(one, partial(compete, place)))
    return Standing(place, tuple(one.duration_seconds for one in before))


def find_places(*, claims: Iterable[tuple[str, str]]) -> Collection[Place]:
    """The places of ``claims``, each with its line before it, strongly read; who has none, or one that can't be read, is left out."""
    return store.find_many(claims, past=pass_over)


def first_that_fits(*, line: str, fits: Callable[[Place], bool], now: datetime) -> tuple[Line, Turn | None]:
    """The line as it is, and whose turn it is: the first place that what is free ``fits``, and that has not lapsed. Of whom ``fits`` can't
    read what decides it (``UnreadableItem``) is passed over: others behind them are served. What is decided by it belongs under
    :func:`has_not_moved`, which the steps of :func:`operations.served` imply."""
    seen = get_line(line)
    if not seen.waiting:
        return seen, None
    found = (place for place in places(line, past=pass_over) if place.lapses_at > now and _does_fit(place, fits))
    return seen, next((Turn(seen, place) for place in found), None)


def _does_fit(place: Place, fits: Callable[[Place], bool]) -> bool:
    try:
        return fits(place)
    except UnreadableItem as error:
        pass_over(error.item)
        return False


def pass_over(place: Unreadable) -> None:
    """Log a place that can't be read: others behind it are served, and of its own request no turn is told."""
    log.warning("waiting.place_unreadable", table=place.table, key=place.key, why=place.why)


def unreadable_wants(place: Place, error: Exception) -> UnreadableItem:
    """What to raise where ``wants`` are not in the words of the pool: somebody else has changed them."""
    return UnreadableItem(Unreadable("WaitingLine", f"{place.line}, place {place.number}", f"wants: {error}"))


def cleaning_of_late(line: str) -> float | None:
    """How long cleaning takes of late, in seconds; ``None``: none was noted yet."""
    return policy.cleaning_of_late(store.cleanings(line))


def expected(*, standing: Standing, ends: Sequence[datetime], grace_seconds: int = 0, now: datetime) -> Expected | None:
    """When the turn is expected to come, by the ``ends`` of what is lent or being cleaned and the last cleanings; ``None``: not known."""
    return policy.expected(
        ahead=standing.ahead,
        ends=ends,
        cleaning_seconds=cleaning_of_late(standing.place.line),
        grace_seconds=grace_seconds,
        now=now,
    )
