"""Accounts with a cleaner: many people for few accounts, served in their order; and taking back against cleaning."""

from __future__ import annotations

import random
from datetime import datetime, timedelta

import pytest

from accessportal.access_requests import operations
from accessportal.access_requests import queries as requests
from accessportal.access_requests.states import AccessRequest, Status
from accessportal.audit import queries as audit
from accessportal.kernel.actors import person
from accessportal.leases import operations as leases
from accessportal.waiting import queries as line
from tests.depth import IS_DEEP
from tests.fixtures_accounts import Borrowed
from tests.leases.conftest import Cleaning, accounts, cleaning
from tests.leases.reading import check_whole, ids_in

__all__ = ["accounts", "cleaning"]
_PEOPLE, _ACCOUNTS = (200, 5) if IS_DEEP else (8, 2)
_HOUR = 3600


@pytest.fixture
def cleaned(borrowed: Borrowed, cleaning: Cleaning) -> Cleaning:
    """The story's pool has a cleaner and a unit."""
    cleaning.set(units={borrowed.story.twin.organizational_units["/Pool"]: "labs"})
    return cleaning


def fill(borrowed: Borrowed, cleaned: Cleaning, count: int) -> list[str]:
    """So many accounts, that the cleaner has cleaned."""
    ids = cleaned.make(*(f"lab-{number}" for number in range(count)))
    borrowed.pool.add(ids, pool="labs", size="small")
    for account_id in ids:
        cleaned.clean(account_id)
    return ids


def test_the_cleaner_begins_after_the_moment_for_taking_back(borrowed: Borrowed, cleaned: Cleaning) -> None:
    (account_id,) = fill(borrowed, cleaned, 1)
    story, runs = borrowed.story, len(cleaned.runs())
    held = borrowed.held()
    borrowed.give_back(held)
    story.clock.advance(100)
    assert cleaned.run().begun == ()
    again = operations.take_back(request_id=held.request_id, actor=story.alice, now=story.clock.now())
    assert story.carry_out(again).is_granted
    story.clock.advance(600)
    assert cleaned.run().begun == ()
    assert len(cleaned.runs()) == runs
    assert borrowed.has_access(story.now_of(again))

    borrowed.give_back(again)
    story.clock.advance(121)
    cleaned.clean(account_id)
    assert len(cleaned.runs()) == runs + 1


def test_whoever_is_later_than_the_cleaner_takes_nothing_back(borrowed: Borrowed, cleaned: Cleaning) -> None:
    (account_id,) = fill(borrowed, cleaned, 1)
    story = borrowed.story
    held = borrowed.held()
    borrowed.give_back(held)
    story.clock.advance(118)
    again = operations.take_back(request_id=held.request_id, actor=story.alice, now=story.clock.now())
    # Its worker died right after it was asked for; the cleaner was faster than the next tick.
    story.clock.advance(10)
    assert cleaned.run().begun == (account_id,)
    story.tick()
    story.tick()
    over = story.now_of(again)
    assert (over.status, over.granted_at) == (Status.REVOKED, None)
    (ended,) = [event for event in audit.chain_of(over.entity) if event.action == "request.end_asked"]
    assert "it is being cleaned" in ended.data["reason"]
    assert story.twin.assignments() == set()
    cleaned.clean(account_id)
    check_whole()


def test_many_wait_for_few_accounts_and_are_served_in_their_order(borrowed: Borrowed, cleaned: Cleaning) -> None:
    """Some give back early, some stop waiting; nobody is skipped, and nobody has what another has."""
    fill(borrowed, cleaned, _ACCOUNTS)
    story, chance = borrowed.story, random.Random(11)
    asked: list[AccessRequest] = []
    foretold: dict[str, tuple[datetime, datetime]] = {}
    actors = borrowed.people(_PEOPLE)
    for actor in actors:
        asked.append(story.carry_out(borrowed.ask(seconds=_HOUR, actor=actor)))
        place = requests.place_in_line(request=story.now_of(asked[-1]), now=story.clock.now())
        if place is not None and place.expected is not None:
            foretold[asked[-1].request_id] = place.expected
    assert line.get_line("account").waiting == _PEOPLE - _ACCOUNTS
    left = set[str]()
    now = {one.request_id: one for one in asked}
    holding: list[AccessRequest] = []
    soonest = story.clock.now()
    for _ in range(_PEOPLE * 40):
        # Minute by minute while something is over, being cleaned, or handed over and not granted yet, as the jobs run.
        is_busy = len(holding) < _ACCOUNTS or soonest < story.clock.now() + timedelta(minutes=5)
        story.clock.advance(60 if is_busy else 300)
        story.tick()
        cleaned.run()
        now = {request_id: story.now_of(one) for request_id, one in now.items() if one.status is Status.ACTIVE}
        waiting = [one for one in now.values() if one.status is Status.ACTIVE and one.granted_at is None]
        holding = [one for one in now.values() if one.is_granted]
        assert len({one.account_id for one in holding}) == len(holding) <= _ACCOUNTS
        if not waiting and not holding:
            break
        soonest = min((one.expires_at for one in holding), default=story.clock.now())
        if waiting and chance.random() < 0.1:
            gone = chance.choice(waiting)
            story.end(gone, actor=person(gone.subject_id))
            left.add(gone.request_id)
        if holding and chance.random() < 0.1:
            one = chance.choice(holding)
            story.end(one, actor=person(one.subject_id))
            soonest = story.clock.now()
    over = [story.now_of(one) for one in asked]
    assert {one.status for one in over} == {Status.REVOKED}
    served = [one for one in over if one.granted_at is not None]
    assert {one.request_id for one in over} - {one.request_id for one in served} <= left
    fences = {one.request_id: _handed_over_at(one) for one in served}
    assert sorted(fences, key=lambda request_id: fences[request_id]) == [one.request_id for one in served]
    assert line.get_line("account").waiting == 0
    assert story.twin.assignments() == set()
    check_whole()
    # Never later than foretold: others gave back early or left, nobody came between.
    came = {one.request_id: one.granted_at for one in served if one.granted_at is not None}
    assert foretold
    assert [one for one, (_, latest) in foretold.items() if one in came and came[one] > latest] == []


def _handed_over_at(request: AccessRequest) -> tuple[datetime, int]:
    """When its account was taken, and the place in the line of those that were served at one moment."""
    (taken,) = [event for event in audit.chain_of(f"lease#{request.request_id}") if event.action == "lease.taken"]
    served = [event for event in audit.chain_of("line#account") if event.action == "line.served" and event.subject == request.request_id]
    return taken.at, served[0].sequence if served else 0


def test_a_pool_that_is_never_empty_has_no_line(borrowed: Borrowed, cleaned: Cleaning) -> None:
    fill(borrowed, cleaned, 2)
    assert borrowed.held().is_granted
    assert line.get_line("account").version == 0
    assert len(ids_in("account_status#available")) == 1
    assert leases.is_cleaner_set()
