"""Our records against what IAM Identity Center really holds: missing, unknown, left over, dead claims, and the brake."""

from __future__ import annotations

from collections.abc import Collection

import pytest

from accessportal.access_requests import operations
from accessportal.access_requests.states import ReconcileReport, Status
from accessportal.assignments import queries as assignments
from accessportal.assignments import store as assignment_store
from accessportal.assignments.states import AssignmentState, Remedy
from accessportal.audit.states import Draft
from accessportal.kernel.actors import system
from accessportal.kernel.errors import Unavailable
from tests.fixtures_story import Story
from tests.fixtures_twin import when


def reconcile(story: Story, *remedies: Remedy, most_share: float = 1.0) -> ReconcileReport:
    return operations.reconcile_assignments(remedies=remedies, most_share=most_share, actor=system("reconcile"), clock=story.clock)


def make_outside(story: Story, *emails: str, permission_set: str = "ReadOnlyAccess") -> None:
    for email in emails:
        story.twin.sso.create_account_assignment(**story.twin.key(email, "payments-dev", permission_set))
        story.clock.advance(3)
        story.twin.sso.list_account_assignments(
            InstanceArn=story.twin.instance_arn,
            AccountId=story.twin.accounts["payments-dev"],
            PermissionSetArn=story.twin.permission_sets[permission_set],
        )


def counts(report: ReconcileReport) -> tuple[int, int, int, int]:
    return len(report.missing), len(report.unknown), len(report.left_over), len(report.dead_claims)


def test_all_is_well_while_access_is_held(story: Story) -> None:
    story.carry_out(story.ask())

    report = reconcile(story, Remedy.REPAIR, Remedy.REMOVE_UNKNOWN)

    assert (report.listed, counts(report), report.mended) == (1, (0, 0, 0, 0), 0)
    assert story.is_assigned()


def test_what_vanished_outside_is_reported_and_made_again_only_when_told(story: Story) -> None:
    story.carry_out(story.ask())
    story.twin.sso.delete_account_assignment(**story.twin.key("alice@example.com", "payments-dev", "PowerUserAccess"))
    story.clock.advance(3)

    reported = reconcile(story)
    assert counts(reported) == (1, 0, 0, 0)
    assert not story.is_assigned()
    repaired = reconcile(story, Remedy.REPAIR)

    assert repaired.mended == 1
    assert story.is_assigned()
    assert counts(reconcile(story)) == (0, 0, 0, 0)


def test_what_the_portal_never_made_is_adopted_and_outlives_a_grant_on_top(story: Story) -> None:
    make_outside(story, "alice@example.com")
    assert counts(reconcile(story, Remedy.REPAIR)) == (0, 1, 0, 0)
    assert story.is_assigned(permission_set="ReadOnlyAccess")

    reconcile(story, Remedy.ADOPT)
    granted = story.carry_out(story.ask(permission_set="ReadOnlyAccess", seconds=60))
    story.clock.advance(61)
    story.tick()

    assert story.now_of(granted).status is Status.REVOKED
    assert story.now_of(granted).receipts[-1].kept_by == ("outside",)
    assert story.is_assigned(permission_set="ReadOnlyAccess")
    assert counts(reconcile(story)) == (0, 0, 0, 0)


def test_what_is_unknown_is_removed_only_when_told_so(story: Story) -> None:
    make_outside(story, "mallory@example.com")

    report = reconcile(story, Remedy.REMOVE_UNKNOWN)

    assert (counts(report), report.mended) == ((0, 1, 0, 0), 1)
    assert story.twin.assignments() == set()


def test_what_came_back_after_its_end_is_left_over(story: Story) -> None:
    granted = story.carry_out(story.ask(permission_set="ReadOnlyAccess", seconds=60))
    story.clock.advance(61)
    story.tick()
    assert story.now_of(granted).status is Status.REVOKED
    make_outside(story, "alice@example.com")
    assert counts(reconcile(story)) == (0, 0, 1, 0)
    assert story.is_assigned(permission_set="ReadOnlyAccess")

    report = reconcile(story, Remedy.REPAIR)

    assert report.mended == 1
    assert story.twin.assignments() == set()


def test_a_landslide_is_stopped(story: Story) -> None:
    everybody: Collection[str] = story.twin.users
    make_outside(story, *everybody)
    make_outside(story, *everybody, permission_set="PowerUserAccess")
    before = story.twin.assignments()
    assert len(before) > 5

    report = reconcile(story, Remedy.REMOVE_UNKNOWN, most_share=0.2)

    assert "Nothing was removed" in report.stopped
    assert (report.mended, story.twin.assignments()) == (0, before)


def test_a_claim_whose_request_is_over_is_found_and_released(story: Story) -> None:
    granted = story.carry_out(story.ask(seconds=60))
    ((_, principal_id, account_id, arn),) = story.twin.assignments()
    (assignment,) = assignments.list_by_state(state=AssignmentState.PRESENT).items
    draft = Draft("assignment.claimed", "alice@example.com", {"claim": "gone", "claims": []})
    assignment_store.add_claim(assignment, "gone", draft=draft, guards=(), actor=system("test"), now=story.clock.now())
    story.clock.advance(61)
    story.tick()
    story.clock.advance(600)
    assert story.now_of(granted).receipts[-1].kept_by == ("gone",)
    assert counts(reconcile(story)) == (0, 0, 0, 1)

    reconcile(story, Remedy.REPAIR)

    assert (principal_id, account_id, arn) not in {row[1:] for row in story.twin.assignments()}
    assert counts(reconcile(story)) == (0, 0, 0, 0)


def test_nothing_is_made_again_for_a_claim_whose_request_is_over(story: Story) -> None:
    granted = story.carry_out(story.ask(seconds=60))
    (assignment,) = assignments.list_by_state(state=AssignmentState.PRESENT).items
    draft = Draft("assignment.claimed", "alice@example.com", {"claim": "gone", "claims": []})
    assignment_store.add_claim(assignment, "gone", draft=draft, guards=(), actor=system("test"), now=story.clock.now())
    story.clock.advance(61)
    story.tick()
    assert story.now_of(granted).status is Status.REVOKED
    story.twin.sso.delete_account_assignment(**story.twin.key("alice@example.com", "payments-dev", "PowerUserAccess"))
    story.clock.advance(600)
    created: list[object] = []

    with when("CreateAccountAssignment", created.append):
        assert counts(reconcile(story, Remedy.REPAIR)) == (1, 0, 0, 1)

    assert created == []
    assert story.twin.assignments() == set()
    assert counts(reconcile(story)) == (0, 0, 0, 0)


def test_what_is_held_from_outside_and_had_to_wait_is_gone_on_with(story: Story) -> None:
    """No request's work comes back to it: left alone it would be “being created” for ever, and keep its place."""
    make_outside(story, "alice@example.com")
    reconcile(story, Remedy.ADOPT)
    story.twin.sso.delete_account_assignment(**story.twin.key("alice@example.com", "payments-dev", "ReadOnlyAccess"))
    story.clock.advance(3)
    running = {"AccountAssignmentCreationStatus": {"RequestId": "job", "Status": "IN_PROGRESS"}}
    with when("DescribeAccountAssignmentCreationStatus", lambda _: running):
        assert len(reconcile(story, Remedy.REPAIR).waiting) == 1
    story.clock.advance(600)

    reconcile(story, Remedy.REPAIR)

    assert assignments.list_by_state(state=AssignmentState.CREATING).items == ()
    assert len(assignments.list_by_state(state=AssignmentState.PRESENT).items) == 1
    assert story.is_assigned(permission_set="ReadOnlyAccess")


def test_a_list_that_can_not_be_read_is_no_empty_list(story: Story) -> None:
    story.carry_out(story.ask())
    story.twin.settings.change({"server_error": 1.0})

    with pytest.raises(Unavailable):
        reconcile(story, Remedy.REPAIR)


@pytest.mark.parametrize("origin", ["never ours", "came back"])
def test_a_removal_that_had_to_wait_is_found_again(story: Story, origin: str) -> None:
    if origin == "came back":
        story.carry_out(story.ask(permission_set="ReadOnlyAccess", seconds=60))
        story.clock.advance(61)
        story.tick()
    make_outside(story, "alice@example.com")
    remedies = (Remedy.REPAIR, Remedy.REMOVE_UNKNOWN)
    story.twin.settings.change({"conflict": 1.0})
    assert len(reconcile(story, *remedies).waiting) == 1
    story.twin.settings.change({"conflict": 0.0})
    story.clock.advance(900)

    assert counts(reconcile(story)) == (0, 0, 1, 0)
    assert reconcile(story, *remedies).mended == 1
    assert story.twin.assignments() == set()
    assert counts(reconcile(story)) == (0, 0, 0, 0)


def test_what_is_missing_is_made_again_even_if_that_has_to_wait(story: Story) -> None:
    granted = story.carry_out(story.ask())
    story.twin.sso.delete_account_assignment(**story.twin.key("alice@example.com", "payments-dev", "PowerUserAccess"))
    story.clock.advance(3)
    story.twin.settings.change({"fail_job": 1.0})

    assert len(reconcile(story, Remedy.REPAIR).waiting) == 1
    assert not story.now_of(granted).is_granted
    assert counts(reconcile(story)) == (0, 0, 0, 0)
    story.twin.settings.change({"fail_job": 0.0})
    story.clock.advance(30)
    story.tick()

    assert story.now_of(granted).is_granted
    assert story.is_assigned()


def test_lost_requests_do_not_take_everybody_s_access_away(story: Story) -> None:
    """The table of requests is empty (a restore, a wrong prefix): every claim looks dead, and the brake must hold."""
    for email in list(story.twin.users)[:4]:
        make_outside(story, email)
        make_outside(story, email, permission_set="PowerUserAccess")
    reconcile(story, Remedy.ADOPT)
    for assignment in assignments.list_by_state(state=AssignmentState.PRESENT).items:
        draft = Draft("assignment.claimed", "alice@example.com", {"claim": "lost", "claims": []})
        assignment_store.add_claim(assignment, "lost", draft=draft, guards=(), actor=system("test"), now=story.clock.now())
    for assignment in assignments.list_by_state(state=AssignmentState.PRESENT).items:
        draft = Draft("assignment.released", "alice@example.com", {"claim": "outside", "claims": []})
        assignment_store.remove_claim(assignment, "outside", draft=draft, actor=system("test"), now=story.clock.now())
    story.clock.advance(600)
    before = story.twin.assignments()

    report = reconcile(story, Remedy.REPAIR, most_share=0.2)

    assert len(report.dead_claims) == len(before) == 8
    assert "Nothing was removed" in report.stopped
    assert story.twin.assignments() == before
