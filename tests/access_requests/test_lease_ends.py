"""Ends of leases: many in one minute, of which one can't be taken back for an hour; and clocks that are changed while leases live."""

from __future__ import annotations

import itertools
from datetime import datetime, timedelta
from typing import Any

import pytest

from accessportal.access_requests.states import AccessRequest, Status, Work
from accessportal.leases import queries as pool
from accessportal.leases.states import AccountState
from accessportal.rules import operations as rules
from tests.depth import IS_DEEP
from tests.fixtures_accounts import LEASE_RULES, SETUP, Borrowed
from tests.fixtures_story import RULES
from tests.fixtures_twin import refuse, when
from tests.leases.reading import check_whole

_MANY = 1_001 if IS_DEEP else 101
# More no rule may let one person have.
_MOST_EACH = 100


def hold_many(borrowed: Borrowed, count: int, *, ends_at: datetime) -> list[AccessRequest]:
    """So many leases of as few people as may have them, that all end at about that moment."""
    story = borrowed.story
    text = RULES + LEASE_RULES.replace("most_per_person: 2", f"most_per_person: {_MOST_EACH}")
    rules.apply_rules(text=text, actor=SETUP, now=story.clock.now())
    borrowed.fill(count)
    actors = borrowed.people(-(-count // _MOST_EACH))
    found = []
    for number in range(count):
        seconds = int((ends_at - story.clock.now()).total_seconds())
        found.append(borrowed.held(seconds=seconds, actor=actors[number % len(actors)]))
    assert all(one.is_granted for one in found)
    return found


def test_one_that_can_not_be_taken_back_for_an_hour_delays_no_other(borrowed: Borrowed) -> None:
    story = borrowed.story
    ends_at = story.clock.now() + timedelta(hours=8)
    held = hold_many(borrowed, _MANY, ends_at=ends_at)
    spread = max(one.expires_at for one in held) - min(one.expires_at for one in held)
    assert spread < timedelta(minutes=1)
    stuck = held[_MANY // 2]
    works_again_at = max(one.expires_at for one in held) + timedelta(hours=1)

    def answer(parameters: dict[str, Any]) -> None:
        if parameters["TargetId"] == stuck.account_id and story.clock.now() < works_again_at:
            refuse("AccessDeniedException")(parameters)

    story.clock.advance((works_again_at - timedelta(hours=1) - story.clock.now()).total_seconds())
    with when("DeleteAccountAssignment", answer):
        story.tick()
        now = {one.request_id: story.now_of(one) for one in held}
        others = [one for request_id, one in now.items() if request_id != stuck.request_id]
        assert {one.status for one in others} == {Status.REVOKED}
        assert all(len(one.receipts) == 2 and not one.receipts[-1].kept_by for one in others)
        # One after the other in this test's only thread: nobody stood by for the one that fails.
        moments = sorted(one.revoked_at for one in others if one.revoked_at is not None)
        assert max(later - before for before, later in itertools.pairwise(moments)) < timedelta(seconds=15)
        failing = now[stuck.request_id]
        assert (failing.status, failing.work, failing.work_attempts) == (Status.ACTIVE, Work.REVOKE, 1)
        assert {key[2] for key in story.twin.assignments()} == {stuck.account_id}
        assert pool.get_lease(lease_id=stuck.request_id).account_id == stuck.account_id
        while story.clock.now() < works_again_at + timedelta(minutes=6):
            story.clock.advance(61)
            story.tick()
    ended = story.now_of(stuck)
    assert ended.status is Status.REVOKED
    assert ended.receipts[-1].lateness_seconds is not None
    assert 3600 <= ended.receipts[-1].lateness_seconds < 3600 + 6 * 60
    assert story.twin.assignments() == set()
    assert pool.get_account(account_id=stuck.account_id).state is AccountState.DIRTY
    check_whole()


@pytest.mark.parametrize("moved", [timedelta(hours=-1), timedelta(hours=1)], ids=["back", "ahead"])
def test_a_clock_that_is_set_wrong_for_a_while_moves_no_end(borrowed: Borrowed, moved: timedelta) -> None:
    borrowed.fill(2)
    story = borrowed.story
    # Nobody was made after they asked.
    story.clock.advance(2 * 3600)
    held = borrowed.held(seconds=4 * 3600)
    before = borrowed.lease_of(held)
    story.clock.advance(moved.total_seconds())
    story.tick()
    story.clock.advance(-moved.total_seconds())
    assert (story.now_of(held).expires_at, borrowed.lease_of(held)) == (held.expires_at, before)

    story.clock.advance(-3600)
    further = borrowed.held(seconds=6 * 3600)
    assert further.granted_at is not None
    assert further.expires_at == further.granted_at + timedelta(hours=6)
    story.clock.advance(3600)
    story.clock.advance((held.expires_at - story.clock.now()).total_seconds() - 1)
    story.tick()
    assert story.now_of(held).is_granted
    story.clock.advance(1)
    story.tick()
    assert story.now_of(held).status is Status.REVOKED
    assert story.now_of(further).is_granted
    assert pool.get_lease(lease_id=further.request_id).ends_at == further.expires_at


@pytest.mark.parametrize("change", ["2026-03-29T00:30:00+00:00", "2026-10-25T00:30:00+00:00"], ids=["spring", "autumn"])
def test_a_daylight_saving_change_moves_no_end(borrowed: Borrowed, monkeypatch: pytest.MonkeyPatch, change: str) -> None:
    """Half an hour before Berlin changes its clocks, for two hours."""
    monkeypatch.setenv("TZ", "Europe/Berlin")
    story = borrowed.story
    story.clock.advance((datetime.fromisoformat(change) - story.clock.now()).total_seconds())
    borrowed.fill(1)
    held = borrowed.held(seconds=7200)
    assert held.granted_at is not None
    assert held.expires_at - held.granted_at == timedelta(hours=2)
    assert borrowed.lease_of(held).ends_at == held.expires_at
    story.clock.advance((held.expires_at - story.clock.now()).total_seconds() - 1)
    assert story.tick().expired == 0
    story.clock.advance(1)
    story.tick()
    assert story.now_of(held).status is Status.REVOKED
