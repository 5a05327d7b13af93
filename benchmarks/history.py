"""What the history of who had what costs: an event that is followed, an answer at a small and at a large log, and five million events:

    python tools/dynamodb_local.py python -m benchmarks.history
    python tools/dynamodb_local.py python -m benchmarks.history 10000 1000000 --rows-direct

With ``--rows-direct`` only the first size is followed as the job does it. For what is beyond it, which would take hours, the rows of the
history are made by the same code of the same events (``fold``, ``keep_mark``), but written in batches like the log, without conditions.
Before that, all rows that the job has written at the first size are compared, byte by byte, with those that are made so. Answers are
measured the same way at each size.

Exit code 1 when an answer costs more at the large log than at the small one, or takes longer than a second, or rows differ.
"""

from __future__ import annotations

import argparse
import time
import uuid
from collections.abc import Iterator
from datetime import datetime, timedelta
from functools import partial

import django
from django.conf import settings

# The names of accounts are in tables of Django's; nothing here looks there.
settings.configure(INSTALLED_APPS=["accessportal.catalog"])
django.setup()

from accessportal.history import operations, queries  # noqa: E402
from accessportal.history.states import Answer, Thing, ThingKind  # noqa: E402
from accessportal.kernel.actors import Actor, Role, person  # noqa: E402
from accessportal.kernel.clock import SystemClock  # noqa: E402
from accessportal.store.base import registered_models  # noqa: E402
from accessportal.store.cursors import configure_cursors  # noqa: E402
from accessportal.store.tables import ensure_table  # noqa: E402
from benchmarks import history_log, meter  # noqa: E402
from benchmarks.history_log import DAYS, EVENTS_OF_ONE, account_of  # noqa: E402
from benchmarks.meter import Measured, measured, metered  # noqa: E402

CLOCK = SystemClock()
ANA = person("ana@example.com", roles=frozenset({Role.AUDITOR}))
_GENERATION = 1
_TIMES = 15
_MOST_MS = 1_000.0
_MOST_GROWTH = 1.1
_TARGET = 5_000_000


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("sizes", nargs="*", type=int, default=[10_000, 100_000], help="events in the log (default: 10000 100000)")
    parser.add_argument("--rows-direct", action="store_true", help="beyond the first size, write the history's rows in batches")
    options = parser.parse_args()
    meter.install()
    history_log.connect(f"bench-{uuid.uuid4().hex[:8]}-")
    configure_cursors("bench")
    for model in registered_models():
        ensure_table(model, clock=CLOCK)
    first, *further = options.sizes
    began_at = CLOCK.now() - timedelta(days=DAYS)
    history_log.fill_directory(began_at)
    _fill(range(first // EVENTS_OF_ONE), began_at)
    _follow(first)
    problems = _compare() if options.rows_direct else []
    small, filled = dict(_measure_all(began_at)), first
    for size in further:
        _fill(range(filled // EVENTS_OF_ONE, size // EVENTS_OF_ONE), began_at, generation=_GENERATION if options.rows_direct else None)
        if options.rows_direct:
            # What is three days old by now is read again.
            operations.follow(clock=CLOCK)
        else:
            _follow(size)
        large, filled = dict(_measure_all(began_at)), size
        print(f"\nAnswers at {first:,} and {size:,} events: round trips, units, milliseconds (medians)\n")
        problems += meter.show_growth(
            small, large, most=_MOST_GROWTH, may_grow=["who had it: a busy account", "who had it: a busy account, for a year"]
        )
        problems += [f"{name} takes {one.milliseconds:.0f} ms" for name, one in large.items() if one.milliseconds > _MOST_MS]
    for problem in problems:
        print(f"NOT GOOD ENOUGH: {problem}")
    return 1 if problems else 0


def _fill(numbers: range, began_at: datetime, *, generation: int | None = None) -> None:
    began = time.monotonic()
    history_log.fill(numbers, began_at, generation=generation)
    rows = "" if generation is None else ", and all that they make in the history"
    print(f"{numbers.stop * EVENTS_OF_ONE:,} events in the log{rows}; filling took {time.monotonic() - began:.0f} s", flush=True)


def _compare() -> list[str]:
    made, differing = history_log.compare(_GENERATION)
    print(f"{made:,} rows made directly of the same events; {len(differing)} differ from those that the job wrote", flush=True)
    return [f"{key} is not the same made directly" for key in differing]


def _follow(events: int) -> None:
    """All of it from nothing, in this process, and what one event took of that."""
    began = time.monotonic()
    with metered() as cost:
        report = operations.rebuild(workers=8, actor=Actor("olga@example.com", frozenset({Role.OPERATOR})), clock=CLOCK)
    assert report.is_ok, report
    seconds = time.monotonic() - began
    counts = {"round trips": cost.round_trips, "read units": cost.read_units, "write units": cost.write_units}
    each = ", ".join(f"{count / events:.2f} {name}" for name, count in counts.items())
    told = f"{report.entities:,} entities in {seconds:.0f} s: an event {each}, {1000 * seconds / events:.2f} ms"
    print(f"made from nothing: {told}; {_TARGET:,} events {seconds / events * _TARGET / 3600:.1f} h", flush=True)


def _measure_all(began_at: datetime) -> Iterator[tuple[str, Measured]]:
    moments = [began_at + timedelta(days=20 * number + 3, hours=number) for number in range(_TIMES)]

    lately = [CLOCK.now() - timedelta(minutes=number) for number in range(_TIMES)]

    def who(thing: Thing, ends: list[datetime], days: int = 0) -> Measured:
        def ask(end: datetime) -> Answer:
            return queries.who_had(thing=thing, at=end - timedelta(days=days), until=end if days else None, actor=ANA)

        return measured([partial(ask, end) for end in ends])

    def what(days: int, ends: list[datetime]) -> Measured:
        def ask(end: datetime) -> Answer:
            return queries.what_had(email="person11@example.com", begin=end - timedelta(days=days), end=end, actor=ANA)

        return measured([partial(ask, end) for end in ends])

    account, busy = (Thing(ThingKind.ACCOUNT, account_of(number)) for number in (141, 0))
    through_group, group = Thing(ThingKind.ACCOUNT, "999999999999"), Thing(ThingKind.GROUP, "/teams")
    yield "who had it: an account", who(account, moments)
    yield "who had it: an account, for a year", who(account, moments, 365)
    yield "who had it: a busy account", who(busy, moments)
    yield "who had it: a busy account, for a year", who(busy, moments, 365)
    yield "who had it: by a group", who(through_group, moments)
    yield "who had it: by a group, lately", who(through_group, lately)
    yield "who had it: by a group, for a year", who(through_group, moments, 365)
    yield "who was in a group", who(group, moments)
    yield "who was in a group, lately", who(group, lately)
    yield "what had: a week", what(7, moments)
    yield "what had: a year", what(365, moments)
    yield "what had: a year, up to now", what(365, lately)
    # How far a run has come is written by the second.
    clocks = [_Ahead(seconds) for seconds in (1, 2, 3)]
    yield "a run that finds nothing", measured([lambda clock=clock: operations.follow(workers=1, clock=clock) for clock in clocks])  # type: ignore[misc]


class _Ahead(SystemClock):
    def __init__(self, seconds: int) -> None:
        self._ahead = timedelta(seconds=seconds)

    def now(self) -> datetime:
        return super().now() + self._ahead


if __name__ == "__main__":
    raise SystemExit(main())
