"""Many people and workers at the same moment, on an engine that really runs them in parallel: one of them wins, the others are told.

Afterwards nobody is left with something half done: every round ends with ``check_whole``.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from datetime import timedelta
from functools import partial

import pytest

from accessportal.access_requests import operations
from accessportal.access_requests.states import AccessRequest, Status, TickReport
from accessportal.kernel.actors import system
from accessportal.kernel.errors import Conflict
from tests.depth import examples
from tests.engine.stage import APPROVERS, DEV_ACCOUNTS, Stage, at_once, jobs_started, lost, won

# That it is seconds is measured by the benchmarks; here the machine may be busy with anything.
_ALLOWED_LATENESS_SECONDS = 30.0


@pytest.mark.parametrize("number", range(examples(1)))
def test_of_fifty_approvals_one_decides_and_all_others_are_told_who(stage: Stage, number: int) -> None:
    asked = stage.ask_for_prod()

    outcomes = at_once([partial(stage.approve, asked, actor=approver) for approver in APPROVERS])

    (winner,) = won(outcomes)
    others = lost(outcomes)
    assert len(others) == len(APPROVERS) - 1
    assert winner.decided_by in {approver.name for approver in APPROVERS}
    for error in others:
        assert isinstance(error, Conflict), repr(error)
        assert winner.decided_by in error.message
        assert isinstance(error.present, AccessRequest)
        assert error.present.decided_by == winner.decided_by
    assert stage.events_of(asked) == ["request.submitted", "request.approved"]
    stage.end_everything()


def test_of_twenty_approvals_for_a_quorum_of_two_just_two_count(stage: Stage) -> None:
    for _ in range(examples(1)):
        asked = stage.ask_for_prod(permission_set="PowerUserAccess")

        outcomes = at_once([partial(stage.approve, asked, actor=approver) for approver in APPROVERS[:20]])

        assert sorted(request.status for request in won(outcomes)) == [Status.ACTIVE, Status.PENDING]
        assert all(isinstance(error, Conflict) for error in lost(outcomes)), lost(outcomes)
        decided = stage.now_of(asked)
        assert len(decided.approvals) == 2
        assert decided.decided_by in decided.approvals
        assert stage.events_of(asked) == ["request.submitted", "request.approval_given", "request.approved"]
        stage.end_everything()


def test_a_form_sent_twenty_times_at_once_is_one_request(stage: Stage) -> None:
    for number in range(examples(2)):
        outcomes = at_once([partial(stage.ask, submission_id=f"once-{number}")] * 20)

        assert lost(outcomes) == []
        assert len({request.request_id for request in won(outcomes)}) == 1
        assert stage.events_of(won(outcomes)[0]) == ["request.auto_approved"]
        stage.end_everything()


def test_twenty_ticks_at_once_carry_every_piece_of_work_out_once(stage: Stage) -> None:
    for _ in range(examples(1)):
        before = Counter(jobs_started(stage.twin.front))
        asked = [stage.ask(account=name, seconds=3600) for name in DEV_ACCOUNTS]

        _twenty_ticks(stage)
        stage.settle()
        assert all(stage.now_of(request).is_granted for request in asked)
        stage.clock.jump(3600)
        _twenty_ticks(stage)
        stage.settle()

        started = Counter(jobs_started(stage.twin.front)) - before
        expected = {(verb, stage.twin.accounts[name]): 1 for name in DEV_ACCOUNTS for verb in ("CREATE", "DELETE")}
        assert dict(started) == expected
        for request in asked:
            assert stage.events_of(request) == ["request.auto_approved", "request.granted", "request.expired", "request.revoked"]
        stage.end_everything()


def test_twenty_ticks_that_stay_for_an_end_take_it_back_once_and_in_time(stage: Stage) -> None:
    # All are asked for before the first is granted: their ends are as close as their beginnings.
    waiting = [stage.ask(account=name, seconds=3600) for name in DEV_ACCOUNTS[:3]]
    asked = [stage.granted(one) for one in waiting]
    before = len(jobs_started(stage.twin.front))
    stage.clock.jump((min(one.expires_at for one in asked) - stage.clock.now()).total_seconds() - 3)

    reports = won(at_once([partial(_tick, stage, 12.0)] * 20))

    assert [failure for report in reports for failure in report.failures] == []
    assert sum(report.expired for report in reports) == len(asked)
    stage.settle()
    ended = [stage.now_of(request) for request in asked]
    assert [request.status for request in ended] == [Status.REVOKED] * len(asked)
    assert len(jobs_started(stage.twin.front)) - before == len(asked)
    latest = [request.receipts[-1].lateness_seconds for request in ended]
    assert all(seconds is not None and seconds < _ALLOWED_LATENESS_SECONDS for seconds in latest), latest
    stage.end_everything()


@pytest.mark.parametrize(
    ("one", "other", "statuses"),
    [
        pytest.param(Stage.approve, Stage.deny, {Status.ACTIVE, Status.DENIED}, id="approve against deny"),
        pytest.param(Stage.approve, Stage.cancel, {Status.ACTIVE, Status.CANCELLED}, id="approve against cancel"),
        pytest.param(Stage.deny, Stage.cancel, {Status.DENIED, Status.CANCELLED}, id="deny against cancel"),
    ],
)
def test_of_two_decisions_one_is_taken(
    stage: Stage,
    one: Callable[[Stage, AccessRequest], AccessRequest],
    other: Callable[[Stage, AccessRequest], AccessRequest],
    statuses: set[Status],
) -> None:
    for _ in range(examples(4)):
        asked = stage.ask_for_prod()

        outcomes = at_once([partial(one, stage, asked), partial(other, stage, asked)])

        (decided,) = won(outcomes)
        (error,) = lost(outcomes)
        assert isinstance(error, Conflict)
        assert decided.decided_by in error.message
        assert stage.now_of(asked).status is decided.status
        assert decided.status in statuses
        assert len(stage.events_of(asked)) == 2
    stage.end_everything()


def test_approved_at_the_last_moment_or_lapsed_but_never_both(stage: Stage) -> None:
    winners = Counter[Status]()
    for _ in range(examples(4)):
        asked = stage.ask_for_prod()
        # Each by their own clock: the approver's is just before the deadline, the sweep's is at it.
        approve = partial(
            operations.approve, request_id=asked.request_id, actor=APPROVERS[0], now=asked.expires_at - timedelta(milliseconds=1)
        )
        lapse = partial(operations.lapse, request_id=asked.request_id, actor=system("tick"), now=asked.expires_at)

        outcomes = at_once([approve, lapse, lapse])

        (decided,) = won(outcomes)
        assert all(isinstance(error, Conflict) for error in lost(outcomes))
        assert stage.now_of(asked).status is decided.status
        assert len(stage.events_of(asked)) == 2
        winners[decided.status] += 1
    assert set(winners) <= {Status.ACTIVE, Status.LAPSED}
    stage.end_everything()


def test_ended_or_extended_the_access_is_there_exactly_while_somebody_holds_it(stage: Stage) -> None:
    for _ in range(examples(2)):
        held = stage.granted(stage.ask(seconds=3600))

        ended, extended = at_once([partial(stage.end, held), partial(stage.extend, held, 7200)])

        assert isinstance(ended, AccessRequest)
        assert isinstance(extended, AccessRequest | Conflict)
        stage.settle()
        stage.check_whole()
        assert stage.now_of(held).status is Status.REVOKED
        # An extension that its end did not see yet goes on; one that it saw ended with it.
        goes_on = isinstance(extended, AccessRequest) and not stage.now_of(extended).ended_by
        assert not isinstance(extended, AccessRequest) or stage.now_of(extended).is_granted is goes_on
        assert len(stage.twin.assignments()) == (1 if goes_on else 0)
        stage.end_everything()


def test_an_extension_that_is_approved_while_the_access_is_being_ended_brings_nothing_back(stage: Stage) -> None:
    for _ in range(examples(4)):
        held = stage.granted(stage.approve(stage.ask_for_prod()))
        waiting = stage.extend(held, 7200)

        ended, approved = at_once([partial(stage.end, held), partial(stage.approve, waiting)])

        assert isinstance(ended, AccessRequest)
        assert isinstance(approved, AccessRequest | Conflict)
        stage.settle()
        stage.check_whole()
        assert stage.now_of(held).status is Status.REVOKED
        assert stage.now_of(waiting).status is (Status.REVOKED if isinstance(approved, AccessRequest) else Status.CANCELLED)
        assert stage.twin.assignments() == set()


def test_ended_while_its_grant_is_under_way_nothing_is_left(stage: Stage) -> None:
    for _ in range(examples(2)):
        asked = stage.ask()

        outcomes = at_once([partial(stage.carry_out, asked), partial(stage.end, asked), partial(stage.carry_out, asked)])

        assert lost(outcomes) == []
        stage.settle()
        stage.check_whole()
        assert stage.now_of(asked).status is Status.REVOKED
        assert stage.twin.assignments() == set()


def test_one_claim_comes_while_the_other_goes(stage: Stage) -> None:
    for _ in range(examples(2)):
        leaving = stage.granted(stage.ask())
        coming = stage.ask()
        stage.end(leaving)

        outcomes = at_once([partial(stage.carry_out, leaving), partial(stage.carry_out, coming)])

        assert lost(outcomes) == []
        stage.settle()
        stage.check_whole()
        assert stage.now_of(leaving).status is Status.REVOKED
        assert stage.now_of(coming).is_granted
        assert len(stage.twin.assignments()) == 1
        stage.end_everything()


def test_eight_claims_come_at_once_and_share_one_creation(stage: Stage) -> None:
    before = len(jobs_started(stage.twin.front))
    asked = [stage.ask() for _ in range(8)]

    outcomes = at_once([partial(stage.carry_out, request) for request in asked])

    assert lost(outcomes) == []
    stage.settle()
    stage.check_whole()
    assert [verb for verb, _ in jobs_started(stage.twin.front)[before:]] == ["CREATE"]
    (assignment,) = (one for one in stage.all_assignments() if one.is_wanted)
    assert assignment.claims == {request.request_id for request in asked}
    stage.end_everything()
    assert [verb for verb, _ in jobs_started(stage.twin.front)[before:]] == ["CREATE", "DELETE"]


def _twenty_ticks(stage: Stage) -> None:
    outcomes = at_once([partial(_tick, stage, 0.0)] * 20)
    assert lost(outcomes) == []
    assert [failure for report in won(outcomes) for failure in report.failures] == []


def _tick(stage: Stage, lookahead_seconds: float) -> TickReport:
    return operations.tick(clock=stage.clock, lookahead_seconds=lookahead_seconds, workers=3)
