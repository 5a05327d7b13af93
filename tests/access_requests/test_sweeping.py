"""How a tick stays: for work that waits a moment, through a hiccup of the store, and with its watch given back at its end."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest
from botocore.exceptions import ReadTimeoutError
from pynamodb.connection import Connection
from pynamodb.exceptions import GetError, QueryError, TransactWriteError, UpdateError

from accessportal.access_requests import operations
from accessportal.access_requests.operations import sweeping
from accessportal.access_requests.states import Status
from accessportal.assignments.effects.call_queue import SharedPace
from accessportal.store import coordination
from accessportal.store.coordination import claim_watch, reserve_slot
from tests.fixtures_story import Story
from tests.fixtures_twin import when


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


def test_a_store_that_does_not_answer_for_a_moment_delays_an_end_by_seconds_only(story: Story) -> None:
    granted = story.carry_out(story.ask(seconds=60))
    outage = [story.clock.now() + timedelta(seconds=50), story.clock.now() + timedelta(seconds=56)]

    def lose(_parameters: object) -> None:
        if outage[0] <= story.clock.now() <= outage[1]:
            raise ReadTimeoutError(endpoint_url="x")

    with when("Query", lose):
        report = story.tick(lookahead_seconds=95)

    assert not report.failures

    ended = story.now_of(granted)
    assert ended.status is Status.REVOKED
    assert ended.receipts[-1].lateness_seconds is not None
    assert ended.receipts[-1].lateness_seconds < 5


class Losing:
    """Of the calls of the store, counted from 0, one is answered to nobody: after it was done, or before."""

    def __init__(self) -> None:
        self.lost = -1
        self.is_done = False
        self.count = 0

    def call(self, send: Callable[[], Any]) -> Any:
        self.count += 1
        if self.count - 1 != self.lost:
            return send()
        if self.is_done:
            send()
        raise ReadTimeoutError(endpoint_url="x")


@pytest.mark.parametrize("is_done", [False, True], ids=["not written", "written"])
def test_no_lost_answer_delays_an_end_by_more_than_seconds(story: Story, is_done: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each answer of the store that a tick needs is lost in turn, with all attempts: the tick goes on by itself."""
    losing, below = Losing(), Connection.dispatch

    def dispatch(self: Any, operation: str, parameters: Any) -> Any:
        def send() -> Any:
            return below(self, operation, parameters)

        if losing.lost < 0:
            return send()
        try:
            return losing.call(send)
        except ReadTimeoutError as error:
            kind = {"GetItem": GetError, "Query": QueryError, "TransactWriteItems": TransactWriteError}.get(operation, UpdateError)
            raise kind("lost", error) from error

    monkeypatch.setattr(Connection, "dispatch", dispatch)
    losing.is_done = is_done
    for lost in itertools.count():
        ended = story.carry_out(story.ask(seconds=60))
        story.clock.advance(60)
        losing.lost, losing.count = lost, 0
        story.tick(lookahead_seconds=95)
        losing.lost, tried = -1, losing.count
        after = story.now_of(ended)
        assert (lost, after.status) == (lost, Status.REVOKED)
        assert after.receipts[-1].lateness_seconds is not None
        assert after.receipts[-1].lateness_seconds < 20, lost
        assert not story.twin.assignments()
        if tried <= lost:
            break
    assert lost > 15


def test_what_the_store_never_answers_for_is_told_and_the_rest_is_done(story: Story) -> None:
    ended = story.carry_out(story.ask(seconds=60))
    story.clock.advance(60)

    def lose(parameters: dict[str, Any]) -> None:
        if "PENDING" in str(parameters["ExpressionAttributeValues"]):
            raise ReadTimeoutError(endpoint_url="x")

    with when("Query", lose):
        report = story.tick(lookahead_seconds=30)

    assert story.now_of(ended).status is Status.REVOKED
    [failure] = report.failures
    assert (failure.item, "ReadTimeoutError" in failure.error) == ("waiting requests", True)


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
