"""Programs that ask in the name of people: for what those may ask for, told on the request and in its chain, and nothing more."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from accessportal.access_requests import operations, queries
from accessportal.access_requests.config import WorkflowSettings, current
from accessportal.access_requests.states import AccessRequest, Program, Status
from accessportal.kernel.actors import Actor, client, person
from accessportal.kernel.errors import Conflict, NotAllowed, NotFound
from tests.fixtures_story import Story

CI = Program(client("ci0000000000"), "CI")
OTHER = Program(client("other0000000"), "Other")


@pytest.fixture
def configured() -> Iterator[None]:
    former = current()
    yield
    operations.configure(former)


def ask(story: Story, *, program: Program | None = CI, actor: Actor | None = None, **changes: Any) -> AccessRequest:
    wanted: dict[str, Any] = {"account": "payments-dev", "permission_set": "PowerUserAccess", "ticket": "", "key": "build-1", **changes}
    return operations.submit(
        kind="aws_account",
        subject_id=None,
        target={"account": wanted["account"], "permission_set": wanted["permission_set"]},
        duration_seconds=wanted.get("seconds", 3_600),
        reason="Build 1",
        ticket_id=wanted["ticket"],
        submission_id=wanted["key"],
        program=program,
        actor=actor or story.alice,
        now=story.clock.now(),
    )


def test_the_access_is_the_persons_and_the_event_the_programs(story: Story) -> None:
    request = ask(story)

    assert (request.requested_by, request.subject_id, request.asked_through) == (
        "alice@example.com",
        "alice@example.com",
        "client:ci0000000000",
    )
    assert request.status is Status.ACTIVE
    (event,) = queries.history(request=request)
    assert (event.actor, event.subject) == ("client:ci0000000000", "alice@example.com")
    assert queries.list_mine(actor=story.alice).items == (request,)
    assert story.ask().asked_through == ""


def test_a_program_asks_for_nothing_that_the_person_could_not(story: Story) -> None:
    for who in (story.mallory, person("nobody@example.com")):
        with pytest.raises(NotAllowed):
            ask(story, actor=who)
    assert queries.list_open(subject_id="mallory@example.com") == ()


def test_the_persons_rule_wants_its_approvers_still(story: Story) -> None:
    request = ask(story, account="payments-prod", permission_set="ReadOnlyAccess", ticket="CHG-20817")

    assert request.status is Status.PENDING
    for nobody in (CI.actor, story.alice):
        with pytest.raises(NotAllowed, match="own request"):
            story.approve(request, actor=nobody)
    assert story.approve(request).status is Status.ACTIVE


def test_a_repetition_is_one_request_and_keys_are_each_programs_own(story: Story) -> None:
    request = ask(story)

    assert ask(story) == request
    assert len({ask(story, program=who).request_id for who in (CI, OTHER, None)}) == 3
    with pytest.raises(Conflict) as reused:
        ask(story, seconds=7_200)
    assert reused.value.code == "submission_reused"
    # The person's own form can't take the place of a program's key.
    assert ask(story, program=None, key="client:ci0000000000 build-2") != ask(story, key="build-2")


def test_the_program_sees_ends_and_withdraws_what_it_asked_for_and_nothing_else(story: Story) -> None:
    mine, others, own = ask(story), ask(story, program=OTHER), story.ask()
    waiting = ask(story, account="payments-prod", permission_set="ReadOnlyAccess", ticket="CHG-20817", key="build-2")
    now = story.clock.now()

    assert queries.get(request_id=mine.request_id, actor=CI.actor, now=now) == mine
    for foreign in (others, own):
        with pytest.raises(NotFound):
            queries.get(request_id=foreign.request_id, actor=CI.actor, now=now)
        with pytest.raises(NotFound):
            story.end(foreign, actor=CI.actor)
    assert story.cancel(waiting, actor=CI.actor).status is Status.CANCELLED
    assert story.end(mine, actor=CI.actor).ended_by == "client:ci0000000000"


def test_programs_have_the_rate_of_their_tokens_and_people_their_room(story: Story, configured: None) -> None:
    """The person can ask still, however often a program asked for them."""
    operations.configure(WorkflowSettings(asks_per_minute=2, most_open=5))
    for number in range(3):
        ask(story, key=f"build-{number}")
    for _ in range(2):
        story.ask()

    for program in (CI, OTHER):
        with pytest.raises(NotAllowed) as full:
            ask(story, program=program, key="one too many")
        assert full.value.code == "too_many_open"
