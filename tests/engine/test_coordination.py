"""What parallel workers agree on, with workers that really are parallel: pace, seats, watches, and the hold on an assignment."""

from __future__ import annotations

import itertools
import threading
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from functools import partial

import pytest

from accessportal.assignments import store as assignments
from accessportal.assignments.states import AssignmentKey, AssignmentState
from accessportal.audit.states import Draft
from accessportal.catalog.states import PrincipalType
from accessportal.kernel.actors import system
from accessportal.store.coordination import claim_watch, leave_seat, reserve_slot, take_seat
from accessportal.store.transactions import ConditionFailed, transact
from tests.engine.stage import at_once, lost, patient, won

pytestmark = pytest.mark.usefixtures("engine")
THREADS = 16
RATE = 40
NOW = datetime(2026, 3, 2, 9, 0, tzinfo=UTC)


def test_sixteen_workers_together_never_get_more_slots_than_the_rate_in_any_second() -> None:
    def work() -> list[datetime]:
        slots = [
            reserve_slot("calls", gap_seconds=1 / RATE, longest_wait_seconds=30, now=datetime.now(UTC)) for _ in range(3 * RATE // THREADS)
        ]
        return [slot for slot in slots if slot is not None]

    outcomes = at_once([work] * THREADS)

    assert lost(outcomes) == []
    slots = sorted(slot for some in won(outcomes) for slot in some)
    assert len(slots) == THREADS * (3 * RATE // THREADS)
    tolerance = timedelta(milliseconds=1)
    for earlier, later in zip(slots, slots[RATE:], strict=False):
        assert later - earlier >= timedelta(seconds=1) - tolerance
    for earlier, later in itertools.pairwise(slots):
        assert later - earlier >= timedelta(seconds=1 / RATE) - tolerance


def test_who_would_wait_too_long_gets_no_slot_and_takes_none() -> None:
    reserve = partial(reserve_slot, "calls", gap_seconds=0.1, longest_wait_seconds=0.5, now=NOW)

    slots = [slot for slot in won(at_once([reserve] * THREADS)) if slot is not None]

    assert sorted(slots) == [NOW + timedelta(seconds=number * 0.1) for number in range(6)]
    assert reserve() is None
    assert reserve_slot("calls", gap_seconds=0.1, longest_wait_seconds=1, now=NOW) == NOW + timedelta(seconds=0.6)


def test_there_are_never_more_seated_than_seats() -> None:
    seats = 5
    seated: set[str] = set()
    most: list[int] = []
    lock = threading.Lock()

    def work(holder: str) -> int:
        taken = 0
        for _ in range(12):
            try:
                patient(partial(transact, [take_seat("creations", holder=holder, seats=seats)]))
            except ConditionFailed:
                continue
            with lock:
                seated.add(holder)
                most.append(len(seated))
            taken += 1
            with lock:
                # Before it is given back: who sees it free may take it at once.
                seated.discard(holder)
            patient(partial(transact, [leave_seat("creations", holder=holder)]))
        return taken

    outcomes = at_once([partial(work, f"worker-{number}") for number in range(THREADS)])

    assert lost(outcomes) == []
    assert max(most) <= seats
    assert sum(won(outcomes)) == len(most) > seats


def test_a_seat_is_taken_once_by_who_asks_twice_and_freed_by_who_has_none() -> None:
    for _ in range(3):
        transact([take_seat("creations", holder="one", seats=1)])
    with pytest.raises(ConditionFailed):
        transact([take_seat("creations", holder="two", seats=1)])

    transact([leave_seat("creations", holder="two")])
    with pytest.raises(ConditionFailed):
        transact([take_seat("creations", holder="two", seats=1)])
    transact([leave_seat("creations", holder="one")])

    transact([take_seat("creations", holder="two", seats=1)])


def test_one_of_sixteen_watches_and_another_only_for_longer() -> None:
    until = NOW + timedelta(seconds=60)

    claim = partial(claim_watch, "ends", longest=timedelta(seconds=180), now=NOW)

    answers = won(at_once([partial(claim, needed_until=until, until=until)] * THREADS))

    assert sorted(answers) == [False] * (THREADS - 1) + [True]
    assert not claim(needed_until=until - timedelta(seconds=1), until=until + timedelta(seconds=60))
    assert claim(needed_until=until + timedelta(seconds=1), until=until + timedelta(seconds=60))


def test_one_worker_holds_an_assignment_until_it_lets_go_or_its_time_is_up() -> None:
    key = AssignmentKey(PrincipalType.USER, "u-1", "111122223333", "arn:aws:sso:::permissionSet/ssoins-1/ps-1")
    draft = Draft("assignment.claimed", "alice@example.com", {"claim": "r1", "claims": ["r1"]})
    assignments.insert(key, claims=frozenset({"r1"}), state=AssignmentState.ABSENT, draft=draft, guards=(), actor=system("test"), now=NOW)
    held = assignments.id_of(key)
    until = assignments.lease_until(NOW, 60)
    acquire: Callable[[], object] = partial(assignments.acquire, held, now=NOW, until=until)

    assert len([one for one in won(at_once([acquire] * THREADS)) if one is not None]) == 1
    assignments.let_go(held, until=until)
    assert len([one for one in won(at_once([acquire] * THREADS)) if one is not None]) == 1
    # Its worker has died: the next one takes over, and the dead one's late let_go does not free it.
    later = NOW + timedelta(seconds=61)
    next_until = assignments.lease_until(later, 60)
    assert assignments.acquire(held, now=later, until=next_until) is not None
    assignments.let_go(held, until=until)
    assert assignments.acquire(held, now=later, until=next_until) is None
