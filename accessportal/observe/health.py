"""Whether pages can be served, and whether work is being done: two questions with two answers, part by part."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Any, TypeVar

import structlog
from django.db import Error as DatabaseError
from django.db import connection, transaction

from accessportal.kernel import moments
from accessportal.kernel.clock import SystemClock
from accessportal.observe import heartbeats
from accessportal.store.tables import silent_tables

log = structlog.get_logger(__name__)

T = TypeVar("T")

# Below what load balancers wait for an answer (AWS: 5 s).
STORE_SECONDS = 4.0
_WRITE_MILLISECONDS = 2000
# A day, which is exported within two hours of its end, and two more.
_OLDEST_EVIDENCE = timedelta(days=3)
# It follows every minute, two minutes back.
_HISTORY_BEHIND = timedelta(minutes=15)
# What was found is told to everybody who asks within a second; several balancers ask every few seconds.
_SHARED_SECONDS = 1.0


class Asker:
    """One thread for all that is asked of DynamoDB in one matter: while it does not answer, no more than this one waits for it."""

    def __init__(self, matter: str) -> None:
        self._thread = ThreadPoolExecutor(max_workers=1, thread_name_prefix=matter)
        self.late: Future[Any] | None = None

    def answer(self, ask: Callable[[], T]) -> T:
        """Return what ``ask`` finds out. :raises TimeoutError: when it takes too long; at once while it still keeps whoever asked before
        waiting."""
        if self.late is not None and not self.late.done():
            raise TimeoutError
        asked = self._thread.submit(ask)
        try:
            return asked.result(timeout=STORE_SECONDS)
        except TimeoutError:
            asked.cancel()
            self.late = asked
            raise


# Metrics ask much more, and a store that is slow must not look silent because of that.
TABLES, FIGURES = Asker("tables"), Asker("figures")


@dataclass(frozen=True, slots=True)
class Health:
    """``missing`` names each part that is not as it should be and says why, in words for operators; empty means well."""

    missing: Mapping[str, str]

    @property
    def is_well(self) -> bool:
        return not self.missing


def pages(*, now: datetime) -> Health:
    """What a page needs: every DynamoDB table answers, and Django's database does. Jobs are no part of it."""
    return Health({part: why for part, why in {**_tables(), "database": check_sql_writes(now=now)}.items() if why})


def work(*, now: datetime) -> Health:
    """Each line of jobs was served of late, and the tick that ends access has come to its end."""
    found = {line: _line(line, now) for line in heartbeats.LINES} | {heartbeats.TICK: _tick(now)}
    found |= {heartbeats.EVIDENCE: evidence(now), heartbeats.HISTORY: history(now)}
    return Health({part: why for part, why in found.items() if why})


def _tables() -> dict[str, str]:
    try:
        silent = TABLES.answer(silent_tables)
    except TimeoutError:
        return {"tables": f"DynamoDB did not answer within {STORE_SECONDS:.0f} s."}
    return {f"table {table}": f"It does not answer ({code}). If it is missing, run create_tables." for table, code in silent.items()}


def check_sql_writes(*, now: datetime) -> str:
    """Why Django's database keeps nothing, in words; empty when it does. A row is written: a reader answers questions, too."""
    try:
        with transaction.atomic():
            if connection.vendor == "postgresql":
                with connection.cursor() as cursor:
                    cursor.execute("SET LOCAL statement_timeout = %s", [_WRITE_MILLISECONDS])
            heartbeats.beat(heartbeats.WEB, now=now)
    except DatabaseError as error:
        if not connection.in_atomic_block:
            # After a fail-over it leads to what is a reader now.
            connection.close()
        return _no_database(error)
    return ""


def _no_database(error: DatabaseError) -> str:
    words = f"Django's database does not answer, or takes no writes ({type(error).__name__})."
    return f"{words} Check PORTAL_DATABASE_URL, and run migrate once."


def _line(line: str, now: datetime) -> str:
    try:
        last = heartbeats.last_beat(line)
    except DatabaseError as error:
        return _no_database(error)
    if last is None:
        return "No job of this line was ever done. Start the worker with: python manage.py run_worker"
    if not last.is_fresh(now):
        return f"A job of this line was last done {_at(last.beat_at)}. Look at the worker's log; start it with: python manage.py run_worker"
    return ""


def _tick(now: datetime) -> str:
    """One that was never done is told by its line."""
    try:
        last = heartbeats.last_beat(heartbeats.TICK)
    except DatabaseError as error:
        return _no_database(error)
    if last is None or last.is_fresh(now, within=heartbeats.TICK_FRESH_FOR):
        return ""
    return f"No tick has come to its end since {_at(last.beat_at)}: access ends late. Look at the worker's log for “tick”."


def evidence(now: datetime) -> str:
    """Of the copy outside; where none is set, nothing was ever told of one."""
    try:
        last = heartbeats.last_beat(heartbeats.EVIDENCE)
    except DatabaseError as error:
        return _no_database(error)
    if last is None:
        return ""
    newest_at = last.detail.get(heartbeats.NEWEST_DAY_AT)
    if newest_at is None:
        return "" if last.is_ok else "No day of evidence was ever exported, and the last try failed. Look at the worker's log."
    day = datetime.fromtimestamp(newest_at, UTC)
    if now - day < _OLDEST_EVIDENCE:
        return ""
    return f"The newest day of evidence is {day:%Y-%m-%d}. Look at the worker's log for “export_evidence”; what is missed is made up."


def history(now: datetime) -> str:
    """Of who had what. One that was never followed is told by its line; while it is being made, each part of that is a sign of life."""
    try:
        last = heartbeats.last_beat(heartbeats.HISTORY)
    except DatabaseError as error:
        return _no_database(error)
    if last is None:
        return ""
    known_until = last.detail.get(heartbeats.KNOWN_UNTIL)
    at = last.beat_at if known_until is None else datetime.fromtimestamp(known_until, UTC)
    if moments.is_recent(at, now=now, within=_HISTORY_BEHIND):
        return ""
    state = f"has been in the making without a sign of life since {_at(at)}" if known_until is None else f"is known up to {_at(at)} only"
    return f"Who had what {state}. Look at the worker's log for “follow_history”."


def _at(moment: datetime) -> str:
    return f"{moment:%Y-%m-%d %H:%M:%S} UTC"


@dataclass(slots=True)
class Shared:
    """One check at a time, whoever asks; nobody waits for another's. What it finds, and that it has changed, is for all and the log."""

    check: Callable[..., Health]
    _lock: threading.Lock = field(default_factory=threading.Lock)
    _found: Health | None = None
    _found_at: float = 0.0
    _began_at: float | None = None

    def found(self) -> Health:
        now = time.monotonic()
        with self._lock:
            if self._found is not None and now - self._found_at < _SHARED_SECONDS:
                return self._found
            if self._began_at is not None:
                is_late = now - self._began_at > STORE_SECONDS
                return Health({"check": "It has not come to its end yet."}) if is_late or self._found is None else self._found
            self._began_at = now
        found = Health({"check": "It has failed."})
        try:
            found = self.check(now=SystemClock().now())
        finally:
            self._keep(found)
        return found

    def forget(self) -> None:
        """The next one who asks has it looked at anew."""
        self._found = None

    def _keep(self, found: Health) -> None:
        with self._lock:
            former, self._found = self._found, found
            self._found_at, self._began_at = time.monotonic(), None
        if found.missing != (former.missing if former else {}):
            log.warning("health.changed", check=self.check.__name__, missing=dict(found.missing))


PAGES = Shared(pages)
WORK = Shared(work)
