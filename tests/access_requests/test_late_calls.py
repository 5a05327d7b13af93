"""Calls that come too late, answers that were lost, changes made outside: no access is left behind and reported gone."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from accessportal.access_requests.states import AccessRequest, Status
from accessportal.assignments import queries as assignments
from accessportal.assignments.effects.call_queue import SharedPace
from accessportal.assignments.states import AssignmentState
from accessportal.audit import queries as audit
from accessportal.aws.errors import Refused, sorted_call
from accessportal.aws.identity_center import IdentityCenter
from tests.fixtures_story import Story


def stand_still_before(monkeypatch: pytest.MonkeyPatch, call: str, meanwhile: Callable[[], None]) -> None:
    """The process stops right before its first ``call`` leaves, ``meanwhile`` happens in the world, and then it goes on."""
    stopped: list[str] = []

    def send(function: Any, /, *args: Any, **kwargs: Any) -> Any:
        if function.__name__ == call and not stopped:
            stopped.append(call)
            meanwhile()
        return sorted_call(function, *args, **kwargs)

    monkeypatch.setattr("accessportal.aws.identity_center.sorted_call", send)


def let_pass(story: Story, seconds: int) -> None:
    for _ in range(seconds // 20):
        story.tick()
        story.clock.advance(20)


def check_ended(story: Story, request: AccessRequest) -> None:
    assert story.now_of(request).status is Status.REVOKED
    assert not story.is_assigned()
    for assignment in assignments.list_by_state(state=AssignmentState.ABSENT).items:
        entity = f"assignment#{assignment.assignment_id}"
        assert audit.check_head(entity, version=assignment.version, audit_head=assignment.audit_head) == []


@pytest.mark.parametrize("answer", ["heard", "lost"])
def test_a_worker_that_slept_through_the_end_takes_its_late_creation_back(
    story: Story, monkeypatch: pytest.MonkeyPatch, answer: str
) -> None:
    asked = story.ask(seconds=60)

    def meanwhile() -> None:
        story.clock.advance(120)
        let_pass(story, 120)
        check_ended(story, asked)
        if answer == "lost":
            story.twin.settings.change({"lose_answer": 1.0})
            monkeypatch.setattr(story.clock, "advance", hear_again)

    advance = story.clock.advance

    def hear_again(seconds: float) -> None:
        story.twin.settings.change({"lose_answer": 0.0})
        advance(seconds)

    stand_still_before(monkeypatch, "create_account_assignment", meanwhile)

    story.carry_out(asked)

    story.clock.advance(60)
    check_ended(story, asked)


def test_a_worker_that_slept_while_it_waited_for_its_turn_sends_nothing(story: Story, monkeypatch: pytest.MonkeyPatch) -> None:
    asked = story.ask(seconds=60)
    sent: list[str] = []
    stand_still_before(monkeypatch, "create_account_assignment", lambda: sent.append("create"))
    wait_for_turn = SharedPace.wait_for_turn

    def wait_long(pace: SharedPace, *, is_urgent: bool = False) -> bool:
        story.clock.advance(50)
        return wait_for_turn(pace, is_urgent=is_urgent)

    monkeypatch.setattr(SharedPace, "wait_for_turn", wait_long)

    story.carry_out(asked)

    assert sent == []


def test_a_late_deletion_takes_nobody_s_new_access_away(story: Story, monkeypatch: pytest.MonkeyPatch) -> None:
    first = story.carry_out(story.ask(seconds=3600))
    again: list[AccessRequest] = []

    def meanwhile() -> None:
        story.clock.advance(120)
        let_pass(story, 120)
        check_ended(story, first)
        again.append(story.ask(seconds=3600))
        let_pass(story, 20)
        assert story.now_of(again[0]).is_granted

    story.end(first)
    stand_still_before(monkeypatch, "delete_account_assignment", meanwhile)

    story.carry_out(first)

    story.clock.advance(60)
    assert story.now_of(again[0]).is_granted
    assert story.is_assigned()


def test_a_creation_that_was_refused_after_a_lost_answer_is_not_taken_for_never_sent(story: Story, monkeypatch: pytest.MonkeyPatch) -> None:
    asked = story.ask()
    story.twin.settings.change({"lose_answer": 1.0})
    story.carry_out(asked)
    story.twin.settings.change({"lose_answer": 0.0})
    with monkeypatch.context() as expired:

        def refuse(*_: object) -> None:
            raise Refused("ExpiredTokenException", "The security token included in the request is expired")

        expired.setattr(IdentityCenter, "create_assignment", refuse)
        expired.setattr(IdentityCenter, "delete_assignment", refuse)
        let_pass(story, 60)
    assert story.is_assigned()

    story.end(asked)
    let_pass(story, 600)

    check_ended(story, asked)


def test_what_came_back_while_its_deletion_ran_is_deleted_again(story: Story) -> None:
    granted = story.carry_out(story.ask())
    story.twin.settings.change({"job_seconds": 100})
    story.end(granted)
    story.tick()
    story.clock.advance(100)
    story.twin.settings.change({"job_seconds": 0})
    story.twin.sso.create_account_assignment(**story.twin.key("alice@example.com", "payments-dev", "PowerUserAccess"))
    story.clock.advance(1)
    assert story.is_assigned()

    let_pass(story, 300)

    check_ended(story, granted)


def test_what_vanished_while_its_creation_ran_is_created_again(story: Story) -> None:
    story.twin.settings.change({"job_seconds": 100})
    asked = story.ask()
    story.tick()
    story.clock.advance(100)
    story.twin.settings.change({"job_seconds": 0})
    story.twin.sso.delete_account_assignment(**story.twin.key("alice@example.com", "payments-dev", "PowerUserAccess"))
    story.clock.advance(1)
    assert not story.is_assigned()

    let_pass(story, 300)

    assert story.now_of(asked).is_granted
    assert story.is_assigned()
