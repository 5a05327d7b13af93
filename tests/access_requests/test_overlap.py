"""Overlapping claims: whatever the order of grants, ends, early ends and extensions, access exists exactly while a claim lives."""

from __future__ import annotations

import hypothesis.strategies as st
import pytest
from hypothesis import HealthCheck, settings
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule, run_state_machine_as_test

from accessportal.access_requests.states import AccessRequest, Status
from accessportal.assignments import queries as assignments
from accessportal.assignments.states import AssignmentState
from accessportal.audit import queries as audit
from accessportal.kernel.errors import InvalidRequest
from tests.depth import examples
from tests.fixtures_story import Story


class Overlap(RuleBasedStateMachine):
    """Alice (and the group that she is in) ask for the same thing again and again. A model of claims is kept beside it.

    Settings of the twin change under way: jobs slow down, fail, conflict, lose their answers.
    """

    story: Story

    def __init__(self) -> None:
        super().__init__()
        self.story.start_over()
        self.story.twin.settings.change({"job_seconds": 2.0, "fail_job": 0.0, "throttle": 0.0, "conflict": 0.0, "lose_answer": 0.0})
        self.requests: list[AccessRequest] = []

    def _refresh(self) -> None:
        self.requests = [self.story.now_of(request) for request in self.requests]

    def _live(self) -> list[AccessRequest]:
        """Requests that are granted and whose end has not come."""
        return [request for request in self.requests if request.is_granted and not request.is_over(self.story.clock.now())]

    @rule(seconds=st.sampled_from([60, 90, 300, 900]))
    def ask(self, seconds: int) -> None:
        if len(self.requests) < 6:
            self.requests.append(self.story.ask(seconds=seconds))

    @rule(which=st.integers(0, 5))
    @precondition(lambda self: self.requests)
    def carry_out(self, which: int) -> None:
        self.story.carry_out(self.requests[which % len(self.requests)])
        self._refresh()

    @rule(which=st.integers(0, 5))
    @precondition(lambda self: self._live())
    def end_early(self, which: int) -> None:
        live = self._live()
        self.story.end(live[which % len(live)])
        self._refresh()

    @rule(which=st.integers(0, 5), seconds=st.sampled_from([120, 600]))
    @precondition(lambda self: self._live() and len(self.requests) < 6)
    def extend(self, which: int, seconds: int) -> None:
        live = self._live()
        first = live[which % len(live)]
        if (first.expires_at - self.story.clock.now()).total_seconds() >= seconds:
            with pytest.raises(InvalidRequest, match="no later than what you already hold"):
                self.story.extend(first, seconds)
        else:
            self.requests.append(self.story.extend(first, seconds))

    @rule(seconds=st.sampled_from([1, 30, 61, 240]))
    def time_passes(self, seconds: int) -> None:
        self.story.clock.advance(seconds)

    @rule()
    def tick(self) -> None:
        assert self.story.tick().failures == ()
        self._refresh()

    @rule(trouble=st.sampled_from([{"conflict": 0.3}, {"lose_answer": 0.3}, {"fail_job": 0.3}, {"throttle": 0.3}, {"job_seconds": 20.0}]))
    def trouble(self, trouble: dict[str, float]) -> None:
        self.story.twin.settings.change(trouble)

    @invariant()
    def whoever_is_shown_as_granted_has_access(self) -> None:
        if self._live():
            assert self.story.is_assigned()

    @invariant()
    def nobody_has_access_that_is_reported_gone(self) -> None:
        if self.requests and all(request.status is Status.REVOKED for request in self.requests):
            assert not self.story.is_assigned()

    def teardown(self) -> None:
        """Trouble ends; a few ticks later every end has been carried out, and no sooner."""
        self.story.twin.settings.change({"job_seconds": 2.0, "fail_job": 0.0, "throttle": 0.0, "conflict": 0.0, "lose_answer": 0.0})
        for _ in range(40):
            self.story.tick()
            self._refresh()
            if all(request.status is Status.REVOKED for request in self.requests):
                break
            self.story.clock.advance(61)
        assert [request.work_error for request in self.requests if request.status is not Status.REVOKED] == []
        assert not self.story.is_assigned()
        for request in self.requests:
            assert audit.check_head(request.entity, version=request.version, audit_head=request.audit_head) == []
            assert request.work is None
        for assignment in assignments.list_by_state(state=AssignmentState.ABSENT).items:
            assert assignment.claims == frozenset()


@pytest.mark.deep
@pytest.mark.slow
def test_access_exists_exactly_while_a_claim_lives(story: Story) -> None:
    machine = type("BoundOverlap", (Overlap,), {"story": story})
    run_state_machine_as_test(
        machine,
        settings=settings(max_examples=examples(6), stateful_step_count=25, suppress_health_check=list(HealthCheck)),
    )
