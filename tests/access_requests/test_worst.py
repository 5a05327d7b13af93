"""IAM Identity Center at its worst: everything still ends proved, nothing is reported before it is so, and what waits says why."""

from __future__ import annotations

import pytest

from accessportal.access_requests import queries
from accessportal.access_requests.states import AccessRequest, Status, Work
from accessportal.assignments.operations import Limits
from accessportal.catalog import operations as catalog
from accessportal.kernel.actors import system
from accessportal.kernel.pages import every
from accessportal.rules import operations as rules
from tests.depth import examples
from tests.fixtures_story import RULES, Story
from tests.fixtures_twin import LostAnswers

WORST = {
    "conflict": 0.1,
    "throttle": 0.1,
    "server_error": 0.05,
    "lose_answer": 0.1,
    "fail_job": 0.1,
    "slow_job": 0.1,
    "slow_job_seconds": 30.0,
    "calls_per_second": 20,
}


def is_present(story: Story, request: AccessRequest) -> bool:
    target = request.target
    return (
        target["principal_type"],
        target["principal_id"],
        target["account_id"],
        target["permission_set_arn"],
    ) in story.twin.assignments()


def settle(story: Story, requests: list[AccessRequest]) -> list[AccessRequest]:
    """Tick until nothing waits. Whatever is reported done at any moment is so at that moment."""
    done: dict[str, AccessRequest] = {}
    reasons: set[str] = set()
    for _ in range(150):
        assert story.tick().failures == ()
        waiting = []
        for request in requests:
            if request.request_id in done:
                continue
            fresh = story.now_of(request)
            if fresh.work is None:
                assert is_present(story, fresh) == (fresh.status is Status.ACTIVE)
                done[fresh.request_id] = fresh
            else:
                waiting.append(fresh)
        if not waiting:
            return [done[request.request_id] for request in requests]
        stuck = list(every(lambda cursor: queries.list_stuck(actor=story.olga, now=story.clock.now(), cursor=cursor)))
        assert {request.request_id for request in waiting if request.work_attempts >= 2} <= {request.request_id for request in stuck}
        assert all(request.work_error for request in stuck if request.work_attempts)
        reasons |= {request.work_error for request in stuck}
        story.clock.advance(20)
    raise AssertionError(f"{len(waiting)} still wait: {reasons}")


@pytest.mark.deep
@pytest.mark.slow
def test_many_grants_and_revocations_all_end_proved(story: Story, shared_pace: None) -> None:
    dev = story.twin.organizational_units["/Workloads/Dev"]
    root = story.twin.organizational_units["/"]
    names = [f"dev-{number:04}" for number in range(examples(6))]
    for name in names:
        made = story.twin.organizations.create_account(AccountName=name, Email=f"{name}@example.com")
        account_id = made["CreateAccountStatus"]["AccountId"]
        story.twin.organizations.move_account(AccountId=account_id, SourceParentId=root, DestinationParentId=dev)
    catalog.sync_catalog(now=story.clock.now(), clock=story.clock)
    # One worker does all in turn here, so hours pass: long enough that nobody's end comes before its grant.
    long = RULES.replace("duration: {min: 1m, default: 1h, max: 4h}", "duration: {default: 1h, max: 30d}")
    rules.apply_rules(text=long, actor=system("setup"), now=story.clock.now())
    asked = [
        story.ask(account=name, permission_set=permission_set, seconds=30 * 86_400)
        for name in names
        for permission_set in ("PowerUserAccess", "ReadOnlyAccess")
    ]
    story.twin.settings.change(WORST)

    granted = settle(story, asked)

    for request in granted:
        assert request.is_granted
        assert request.receipts[-1].work is Work.GRANT
        story.end(request)
    revoked = settle(story, granted)
    assert [request.status for request in revoked] == [Status.REVOKED] * len(asked)
    assert all(request.receipts[-1].work is Work.REVOKE for request in revoked)
    assert story.twin.assignments() == set()


def test_an_account_that_takes_no_more_is_stuck_with_its_reason_until_it_ends(story: Story) -> None:
    story.twin.settings.change({"role_quotas": {story.twin.accounts["payments-dev"]: 0}})
    asked = story.ask(seconds=3600)

    for _ in range(3):
        story.tick()
        story.clock.advance(30)

    (stuck,) = queries.list_stuck(actor=story.olga, now=story.clock.now()).items
    assert stuck.request_id == asked.request_id
    assert "could not create it" in stuck.work_error
    assert stuck.status is Status.ACTIVE
    story.clock.advance(3600)
    story.tick()
    assert story.now_of(asked).status is Status.REVOKED
    assert story.twin.assignments() == set()


def test_a_revocation_that_fails_never_gives_up(story: Story) -> None:
    granted = story.carry_out(story.ask(seconds=60))
    story.twin.settings.change({"server_error": 1.0})
    gaps = []
    for _ in range(12):
        story.clock.advance(400)
        story.tick()
        waiting = story.now_of(granted)
        assert (waiting.status, waiting.work) == (Status.ACTIVE, Work.REVOKE)
        assert waiting.work_due_at is not None
        gaps.append((waiting.work_due_at - story.clock.now()).total_seconds())
    assert gaps[0] < 10 < gaps[5] <= 375
    assert story.is_assigned()

    story.twin.settings.change({"server_error": 0.0})
    story.clock.advance(400)
    story.tick()

    assert story.now_of(granted).status is Status.REVOKED
    assert not story.is_assigned()
    assert story.now_of(granted).receipts[-1].lateness_seconds > 4000  # type: ignore[operator]


def test_a_revocation_whose_job_never_ends_is_stuck_though_nothing_failed(story: Story) -> None:
    granted = story.carry_out(story.ask(seconds=60))
    story.twin.settings.change({"job_seconds": 10_000})
    story.clock.advance(61)
    for _ in range(4):
        story.tick()
        story.clock.advance(20)

    (stuck,) = queries.list_stuck(actor=story.olga, now=story.clock.now()).items

    assert (stuck.request_id, stuck.work, stuck.work_attempts) == (granted.request_id, Work.REVOKE, 0)
    # By then it was sent again, and AWS says why it takes no second one.
    assert "Another job is running" in stuck.work_error


def test_a_grant_without_a_free_place_keeps_no_worker_waiting(story: Story, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("accessportal.assignments.config._limits._value", Limits(open_creations=1))
    story.twin.settings.change({"job_seconds": 60.0})
    first = story.carry_out(story.ask())
    before = story.clock.now()

    queued = story.carry_out(story.ask(permission_set="ReadOnlyAccess"))

    assert (story.clock.now() - before).total_seconds() < 1
    assert "1 creations are open" in queued.work_error
    assert queued.work_attempts == 0
    for _ in range(4):
        story.clock.advance(60)
        story.tick()
    assert story.now_of(first).is_granted
    assert story.now_of(queued).is_granted


def test_a_claim_whose_answer_was_lost_is_worked_on_at_once(story: Story, lost_answers: LostAnswers) -> None:
    """The lease of the request, of the assignment, and the slot of each call: none of them is taken for somebody else's."""
    asked = story.ask()
    before = story.clock.now()
    lost_answers.of("UpdateItem", times=2)

    granted = story.carry_out(asked)

    assert granted.is_granted
    assert (story.clock.now() - before).total_seconds() < 10
