"""How a tick stays: for work that waits a moment, through a hiccup of the store, and with its watch given back at its end."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest

from accessportal.access_requests import operations
from accessportal.access_requests.operations import sweeping
from accessportal.access_requests.states import Status
from accessportal.assignments.effects import SharedPace
from accessportal.kernel.errors import Unavailable
from accessportal.store import coordination
from accessportal.store.coordination import claim_watch, reserve_slot
from tests.fixtures_story import Story


def test_a_watch_that_ended_early_is_given_back(story: Story) -> None:
    """Or the next short access would be told that somebody watches, and nobody did."""
    story.carry_out(story.ask(seconds=60))
    began = story.clock.now()

    story.tick(lookahead_seconds=95)

    now = story.clock.now()
    assert timedelta(seconds=55) <= now - began < timedelta(seconds=90)
    soon = now + timedelta(seconds=1)
    assert claim_watch("access-ends", needed_until=soon, until=soon, longest=timedelta(seconds=210), now=now)


def test_who_asks_while_a_watcher_leaves_is_still_seen(story: Story, monkeypatch: pytest.MonkeyPatch) -> None:
    story.carry_out(story.ask(seconds=60))
    leave = coordination.leave_watch
    late: list[Any] = []

    def ask_then_leave(name: str, **when: Any) -> None:
        if not late:
            late.append(story.ask(permission_set="ReadOnlyAccess", seconds=60))
            until = late[0].expires_at
            assert operations.watch_ends(until=until, clock=story.clock) is None
        leave(name, **when)

    monkeypatch.setattr(sweeping, "leave_watch", ask_then_leave)

    operations.watch_ends(until=story.clock.now() + timedelta(seconds=100), clock=story.clock)

    assert story.now_of(late[0]).status is Status.REVOKED


def test_a_store_that_does_not_answer_for_a_moment_delays_an_end_by_seconds_only(story: Story, monkeypatch: pytest.MonkeyPatch) -> None:
    granted = story.carry_out(story.ask(seconds=60))
    look: Callable[..., Any] = sweeping._start_due
    outage = [story.clock.now() + timedelta(seconds=50), story.clock.now() + timedelta(seconds=56)]

    def start_due(*args: Any, now: Any, **kwargs: Any) -> Any:
        if outage[0] <= now <= outage[1]:
            raise Unavailable("The database did not answer", code="store_unavailable")
        return look(*args, now=now, **kwargs)

    monkeypatch.setattr(sweeping, "_start_due", start_due)

    story.tick(lookahead_seconds=95)

    ended = story.now_of(granted)
    assert ended.status is Status.REVOKED
    assert ended.receipts[-1].lateness_seconds is not None
    assert ended.receipts[-1].lateness_seconds < 5


def test_a_deletion_goes_before_everything_that_queues(story: Story, shared_pace: None) -> None:
    pace = SharedPace(story.clock)
    # Others' calls have filled the half second that they may.
    while reserve_slot("identity-center.calls", gap_seconds=1 / 18, longest_wait_seconds=0.5, now=story.clock.now()):
        pass
    assert not pace._take_slot(0.4)
    before = story.clock.now()

    assert pace.wait_for_turn(is_urgent=True)

    assert story.clock.now() - before <= timedelta(seconds=0.6)


def test_a_clock_that_was_wrong_once_does_not_stop_all_calls(story: Story) -> None:
    wrong = story.clock.now() + timedelta(days=1)
    assert reserve_slot("identity-center.calls", gap_seconds=0.1, longest_wait_seconds=8, now=wrong)

    now = story.clock.now()

    assert reserve_slot("identity-center.calls", gap_seconds=0.1, longest_wait_seconds=8, now=now) == now
