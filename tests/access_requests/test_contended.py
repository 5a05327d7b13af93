"""Others who come between again and again: what ends access neither gives up for long nor keeps silent."""

from __future__ import annotations

from typing import Any

import pytest

from accessportal.access_requests.states import Status
from accessportal.assignments import store as assignments
from accessportal.directory.operations import claims
from accessportal.directory.states import GroupRole
from accessportal.kernel.errors import NoAnswer
from accessportal.store.transactions import Overtaken
from tests.access_requests.test_late_calls import check_ended, let_pass, stand_still_before
from tests.fixtures_story import Story

# More than anybody tries to write before telling that others never cease.
_OFTEN = 30
GROUP = "/engineering/payments"


def come_between(monkeypatch: pytest.MonkeyPatch, room: Any, name: str) -> None:
    """The first ``_OFTEN`` calls of ``name`` find that somebody else was faster."""
    write, refused = getattr(room, name), list[str]()

    def contended(*args: Any, **kwargs: Any) -> Any:
        if len(refused) < _OFTEN:
            refused.append(name)
            raise Overtaken
        return write(*args, **kwargs)

    monkeypatch.setattr(room, name, contended)


def test_an_assignment_that_others_keep_changing_is_taken_back_within_seconds(story: Story, monkeypatch: pytest.MonkeyPatch) -> None:
    asked = story.carry_out(story.ask(seconds=3600))
    story.end(asked)
    come_between(monkeypatch, assignments, "remove_claim")

    with pytest.raises(NoAnswer):
        story.carry_out(asked)
    story.clock.advance(5)
    story.carry_out(asked)

    check_ended(story, asked)


def test_a_membership_that_others_keep_changing_is_taken_back_within_seconds(story: Story, monkeypatch: pytest.MonkeyPatch) -> None:
    asked = story.carry_out(story.ask_to_join())
    group_id, role = asked.target["group_id"], asked.target["role"]
    assert story.role_of(asked.subject_id, group_id) is GroupRole(role)
    story.end(asked)
    come_between(monkeypatch, claims, "write_person")

    story.tick()
    story.clock.advance(5)
    story.tick()

    assert story.now_of(asked).status is Status.REVOKED
    assert story.role_of(asked.subject_id, group_id) is None


def test_a_late_call_is_never_forgotten_however_many_others_come_between(story: Story, monkeypatch: pytest.MonkeyPatch) -> None:
    asked = story.ask(seconds=60)

    def meanwhile() -> None:
        story.clock.advance(120)
        let_pass(story, 120)
        check_ended(story, asked)
        come_between(monkeypatch, assignments, "move")

    stand_still_before(monkeypatch, "create_account_assignment", meanwhile)

    story.carry_out(asked)

    story.clock.advance(60)
    check_ended(story, asked)
