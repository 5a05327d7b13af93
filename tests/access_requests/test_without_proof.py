"""A proof that can't be had, and things that are gone: neither stops the taking back, nor holds a place for ever."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from botocore.exceptions import ClientError

from accessportal.access_requests import operations, queries
from accessportal.access_requests.states import AccessRequest, ReconcileReport, Status, Work
from accessportal.assignments import queries as assignments
from accessportal.assignments.operations import Limits
from accessportal.assignments.states import AssignmentState, Remedy
from accessportal.aws.errors import Gone, Refused, sort_error
from accessportal.kernel.actors import system
from tests.fixtures_story import Story
from tests.fixtures_twin import refuse, when

READS = ("ListAccountAssignments", "DescribeAccountAssignmentCreationStatus", "DescribeAccountAssignmentDeletionStatus")
ERRORS = {"AccessDeniedException": 400, "ThrottlingException": 400, "InternalServerException": 500, "ValidationException": 400}


def let_pass(story: Story, seconds: int) -> None:
    for _ in range(seconds // 30):
        assert story.tick().failures == ()
        story.clock.advance(30)


def reconcile(story: Story, *remedies: Remedy) -> ReconcileReport:
    return operations.reconcile_assignments(remedies=remedies, most_share=1.0, actor=system("reconcile"), clock=story.clock)


def stuck(story: Story) -> dict[str, AccessRequest]:
    return {one.request_id: one for one in queries.list_stuck(actor=story.olga, now=story.clock.now()).items}


def create_by_hand(story: Story, email: str, account: str = "payments-dev", permission_set: str = "ReadOnlyAccess") -> None:
    story.twin.sso.create_account_assignment(**story.twin.key(email, account, permission_set))
    story.clock.advance(3)


@pytest.mark.parametrize("code", ERRORS)
@pytest.mark.parametrize("read", READS)
def test_what_is_past_its_end_is_deleted_whatever_can_not_be_read(story: Story, read: str, code: str) -> None:
    asked = story.ask(seconds=600)
    with when(read, refuse(code, status=ERRORS[code])):
        let_pass(story, 300)
        assert story.is_assigned()
        if read != READS[2]:
            assert not story.now_of(asked).is_granted
            assert story.now_of(asked).work_error
            assert asked.request_id in stuck(story)

        let_pass(story, 600)

        assert not story.is_assigned()
        ended = story.now_of(asked)
        if read == READS[0]:
            # Nobody says that it is gone, so neither do we. How the jobs are doing is not needed for it.
            assert (ended.status, ended.work) == (Status.ACTIVE, Work.REVOKE)
            assert ended.work_error
            assert asked.request_id in stuck(story)
        else:
            assert ended.status is Status.REVOKED
    let_pass(story, 600)
    assert story.now_of(asked).status is Status.REVOKED
    assert stuck(story) == {}


def test_a_deletion_without_proof_is_sent_again_and_again(story: Story) -> None:
    granted = story.carry_out(story.ask(seconds=60))
    with when("ListAccountAssignments", refuse("AccessDeniedException")):
        story.clock.advance(60)
        let_pass(story, 60)
        assert not story.is_assigned()
        assert "it can't be proved to be gone" in story.now_of(granted).work_error
        create_by_hand(story, "alice@example.com", permission_set="PowerUserAccess")

        let_pass(story, 900)

        assert not story.is_assigned()
    assert story.now_of(granted).status is Status.ACTIVE


@pytest.mark.parametrize("read", READS[:2])
def test_creations_without_proof_do_not_fill_every_place(story: Story, monkeypatch: pytest.MonkeyPatch, read: str) -> None:
    monkeypatch.setattr("accessportal.assignments.config._limits._value", Limits(open_creations=2))
    blocked = {story.twin.accounts["payments-dev"]}

    def answer(parameters: dict[str, Any]) -> Any:
        dark = parameters.get("AccountId") in blocked or read == READS[1]
        return refuse("AccessDeniedException")(parameters) if dark else None

    first, second = story.ask(), story.ask(permission_set="ReadOnlyAccess")
    with when(read, answer):
        let_pass(story, 150)
        assert story.is_assigned()
        assert not story.now_of(first).is_granted
        third = story.approve(story.ask_for_prod())
        let_pass(story, 30)

        assert story.is_assigned(account="payments-prod", permission_set="ReadOnlyAccess")
    let_pass(story, 1200)
    assert all(story.now_of(one).is_granted for one in (first, second, third))


def test_a_creation_that_never_gets_an_answer_does_not_hold_its_place(story: Story, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("accessportal.assignments.config._limits._value", Limits(open_creations=1))
    dark = story.twin.accounts["payments-dev"]

    def answer(parameters: dict[str, Any]) -> Any:
        return refuse("InternalServerException", status=500)(parameters) if parameters["TargetId"] == dark else None

    with when("CreateAccountAssignment", answer):
        story.ask()
        let_pass(story, 240)
        other = story.approve(story.ask_for_prod())

        let_pass(story, 60)

    assert story.now_of(other).is_granted


@pytest.mark.parametrize("status", ["IN_PROGRESS", "PAUSED", ""])
@pytest.mark.parametrize("read", READS[1:])
def test_a_job_of_which_nothing_else_is_ever_said_keeps_nothing(story: Story, read: str, status: str) -> None:
    """It runs for ever, or is in a state that nobody knows, or the answer says nothing of it."""
    asked = story.ask(seconds=1200)
    row = {"RequestId": "job", "Status": status} if status else {}
    with when(read, lambda _: {read.removeprefix("Describe"): row}):
        let_pass(story, 120)
        assert story.is_assigned()

        let_pass(story, 1800)

        assert not story.is_assigned()
        assert story.now_of(asked).status is Status.REVOKED
        assert assignments.list_by_state(state=AssignmentState.CREATING).items == ()


def test_creations_that_are_said_to_run_for_ever_do_not_fill_every_place(story: Story, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("accessportal.assignments.config._limits._value", Limits(open_creations=1))
    running = {"AccountAssignmentCreationStatus": {"RequestId": "job", "Status": "IN_PROGRESS"}}
    asked = story.ask()
    with when("DescribeAccountAssignmentCreationStatus", lambda _: running):
        let_pass(story, 120)
        assert not story.now_of(asked).is_granted
        other = story.approve(story.ask_for_prod())

        let_pass(story, 60)

        assert story.is_assigned(account="payments-prod", permission_set="ReadOnlyAccess")
    let_pass(story, 120)
    assert all(story.now_of(one).is_granted for one in (asked, other))


def test_a_creation_answered_with_nothing_may_have_been_made(story: Story) -> None:
    asked = story.ask(seconds=600)
    with when("CreateAccountAssignment", lambda _: {}):
        let_pass(story, 60)
        assert "UnreadableAnswer" in story.now_of(asked).work_error
    create_by_hand(story, "alice@example.com", permission_set="PowerUserAccess")
    story.clock.advance(600)

    let_pass(story, 60)

    assert not story.is_assigned()
    assert story.now_of(asked).status is Status.REVOKED


# What is gone

GONE: dict[str, Callable[[Story], Any]] = {
    "user": lambda story: story.twin.identity_store.delete_user(
        IdentityStoreId=story.twin.identity_store_id, UserId=story.twin.users["alice@example.com"]
    ),
    "permission set": lambda story: story.twin.sso.delete_permission_set(
        InstanceArn=story.twin.instance_arn, PermissionSetArn=story.twin.permission_sets["PowerUserAccess"]
    ),
    "account": lambda story: story.twin.organizations.remove_account_from_organization(AccountId=story.twin.accounts["payments-dev"]),
}


@pytest.mark.parametrize("what", GONE)
def test_access_ends_with_proof_when_what_it_was_about_is_gone(story: Story, what: str) -> None:
    granted = story.carry_out(story.ask(seconds=600))
    assert granted.is_granted
    GONE[what](story)
    story.clock.advance(600)

    let_pass(story, 60)

    ended = story.now_of(granted)
    assert (ended.status, ended.receipts[-1].work) == (Status.REVOKED, Work.REVOKE)
    assert stuck(story) == {}
    report = reconcile(story)
    assert (report.missing, report.unknown, report.left_over) == ((), (), ())


@pytest.mark.parametrize("what", GONE)
def test_access_that_was_never_granted_ends_when_what_it_was_about_is_gone(story: Story, what: str) -> None:
    asked = story.ask(seconds=600)
    GONE[what](story)
    let_pass(story, 120)
    waiting = story.now_of(asked)
    # Only of an account AWS does not say that it is gone when it is asked to create.
    assert waiting.work_error if what == "account" else waiting.status is Status.REVOKED
    story.clock.advance(600)

    let_pass(story, 60)

    assert story.now_of(asked).status is Status.REVOKED


def test_a_deleted_group_is_as_good(story: Story) -> None:
    granted = story.carry_out(story.ask(subject_id="/engineering/payments", seconds=600))
    group_id = story.twin.groups["/engineering/payments"]
    story.twin.identity_store.delete_group(IdentityStoreId=story.twin.identity_store_id, GroupId=group_id)
    story.clock.advance(600)

    let_pass(story, 60)

    assert story.now_of(granted).status is Status.REVOKED


def test_a_closed_account_may_be_opened_again_so_nothing_is_proved_by_it(story: Story) -> None:
    granted = story.carry_out(story.ask(seconds=600))
    story.twin.organizations.close_account(AccountId=story.twin.accounts["payments-dev"])
    story.clock.advance(600)

    let_pass(story, 120)

    assert story.now_of(granted).status is Status.ACTIVE
    assert "takes longer" in stuck(story)[granted.request_id].work_error
    GONE["account"](story)
    let_pass(story, 600)
    assert story.now_of(granted).status is Status.REVOKED


@pytest.mark.parametrize("seen", ["no instance", "another instance"])
def test_an_instance_that_can_not_be_seen_proves_nothing(story: Story, seen: str) -> None:
    """Credentials of another account or region: everything there is not found, and everything here goes on."""
    granted = story.carry_out(story.ask(seconds=600))
    other = {"InstanceArn": "arn:aws:sso:::instance/ssoins-0000000000000000", "IdentityStoreId": "d-0000000000"}
    instances = [other] if seen == "another instance" else []
    gone = refuse("ResourceNotFoundException")
    story.clock.advance(600)
    with (
        when("ListInstances", lambda _: {"Instances": instances}),
        when("ListAccountAssignments", gone),
        when("DeleteAccountAssignment", gone),
        when("ListAccountsForProvisionedPermissionSet", gone),
    ):
        let_pass(story, 120)
        assert story.now_of(granted).status is Status.ACTIVE
        assert "InstanceNotFound" in story.now_of(granted).work_error
        assert len(reconcile(story).unread) == 2

    let_pass(story, 600)
    assert story.now_of(granted).status is Status.REVOKED


def test_a_key_that_is_not_found_is_not_the_thing_that_is_asked_for() -> None:
    answer: Any = {"Error": {"Code": "ResourceNotFoundException", "Message": "no"}, "ResponseMetadata": {"HTTPStatusCode": 400}}

    assert type(sort_error(ClientError(answer, "ListAccountAssignments"))) is Gone
    assert type(sort_error(ClientError(answer | {"Reason": "KMS_NotFoundException"}, "ListAccountAssignments"))) is Refused


def no_store(parameters: dict[str, Any]) -> Any:
    answer: Any = {"Error": {"Code": "ResourceNotFoundException", "Message": "no"}, "ResponseMetadata": {"HTTPStatusCode": 400}}
    raise ClientError(answer | {"ResourceType": "IDENTITY_STORE"}, "DescribeUser")


def test_a_store_that_is_not_found_does_not_prove_its_users_gone(story: Story) -> None:
    granted, waiting = story.carry_out(story.ask(seconds=600)), story.ask(permission_set="ReadOnlyAccess")
    story.clock.advance(600)
    story.twin.settings.change({"fail_job": 1.0})
    with when("DescribeUser", no_store):
        let_pass(story, 120)
        assert story.is_assigned()
        assert [story.now_of(one).status for one in (granted, waiting)] == [Status.ACTIVE, Status.ACTIVE]
        assert stuck(story).keys() == {granted.request_id, waiting.request_id}
    story.twin.settings.change({"fail_job": 0.0})

    let_pass(story, 600)

    assert not story.is_assigned()
    assert story.now_of(granted).status is Status.REVOKED
    assert story.now_of(waiting).is_granted


# Comparing


@pytest.mark.parametrize("code", ["ResourceNotFoundException", "AccessDeniedException"])
def test_an_account_that_can_not_be_listed_is_named_and_hinders_no_other(story: Story, code: str) -> None:
    story.carry_out(story.ask(permission_set="ReadOnlyAccess"))
    create_by_hand(story, "mallory@example.com", "payments-prod")
    create_by_hand(story, "mallory@example.com", "security-audit")
    dark = story.twin.accounts["payments-dev"]

    def answer(parameters: dict[str, Any]) -> Any:
        return refuse(code)(parameters) if parameters["AccountId"] == dark else None

    with when("ListAccountAssignments", answer):
        report = reconcile(story, Remedy.REPAIR, Remedy.REMOVE_UNKNOWN)

    assert [(one.account_id, one.permission_set_arn) for one in report.unread] == [(dark, story.twin.permission_sets["ReadOnlyAccess"])]
    assert code in report.unread[0].error
    assert {finding.key.account_id for finding in report.unknown} == {
        story.twin.accounts["payments-prod"],
        story.twin.accounts["security-audit"],
    }
    assert (report.missing, report.mended) == ((), 2)
    assert {row[2] for row in story.twin.assignments()} == {dark}


def test_accounts_that_can_not_be_listed_are_no_missing_access(story: Story) -> None:
    story.carry_out(story.ask())

    with when("ListAccountsForProvisionedPermissionSet", refuse("AccessDeniedException")):
        report = reconcile(story, Remedy.REPAIR)

    assert (report.listed, report.missing, report.mended) == (0, (), 0)
    assert {(one.account_id, one.permission_set_arn) for one in report.unread} == {
        ("", story.twin.permission_sets[name]) for name in ("PowerUserAccess", "ReadOnlyAccess")
    }


@pytest.mark.parametrize("code", ["ThrottlingException", "InternalServerException"])
def test_one_list_without_an_answer_is_asked_for_again(story: Story, code: str) -> None:
    story.carry_out(story.ask())
    unanswered = [refuse(code, status=ERRORS[code])] * 2

    with when("ListAccountAssignments", lambda parameters: unanswered.pop()(parameters) if unanswered else None):
        report = reconcile(story)

    assert (report.listed, report.unread, report.missing) == (1, (), ())


def test_what_a_deleted_user_is_still_listed_with_is_nobody_s_access(story: Story) -> None:
    create_by_hand(story, "alice@example.com")
    create_by_hand(story, "mallory@example.com")
    GONE["user"](story)

    report = reconcile(story, Remedy.REMOVE_UNKNOWN)

    assert [finding.key.principal_id for finding in report.unknown] == [story.twin.users["mallory@example.com"]]
    assert report.unread == ()
