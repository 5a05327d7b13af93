"""What the front adds to moto's Identity Center, on the test's clock: jobs, conflicts, limits, silent failures, faults."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import botocore.session
import pytest
from botocore.exceptions import ClientError

from accessportal.twin.callers import may_call

if TYPE_CHECKING:
    from tests.fixtures_twin import Twin

ALICE_DEV = ("alice@example.com", "payments-dev", "PowerUserAccess")
ALICE_PROD = ("alice@example.com", "payments-prod", "ReadOnlyAccess")
UNKNOWN_SET = "arn:aws:sso:::permissionSet/ssoins-0000000000000000/ps-0000000000000000"
UNKNOWN_PRINCIPAL = "11111111-2222-4333-8444-555555555555"


def create(twin: Twin, names: tuple[str, str, str] = ALICE_DEV) -> dict[str, Any]:
    return dict(twin.sso.create_account_assignment(**twin.key(*names))["AccountAssignmentCreationStatus"])


def delete(twin: Twin, names: tuple[str, str, str] = ALICE_DEV) -> dict[str, Any]:
    return dict(twin.sso.delete_account_assignment(**twin.key(*names))["AccountAssignmentDeletionStatus"])


def creation(twin: Twin, request_id: str) -> dict[str, Any]:
    answer = twin.sso.describe_account_assignment_creation_status(
        InstanceArn=twin.instance_arn, AccountAssignmentCreationRequestId=request_id
    )
    return dict(answer["AccountAssignmentCreationStatus"])


def deletion(twin: Twin, request_id: str) -> dict[str, Any]:
    answer = twin.sso.describe_account_assignment_deletion_status(
        InstanceArn=twin.instance_arn, AccountAssignmentDeletionRequestId=request_id
    )
    return dict(answer["AccountAssignmentDeletionStatus"])


def code(call: Callable[[], Any]) -> str:
    """The error code that AWS answers, or ``ok``."""
    try:
        call()
    except ClientError as error:
        return error.response["Error"]["Code"]
    return "ok"


def granted(twin: Twin, names: tuple[str, str, str] = ALICE_DEV) -> None:
    create(twin, names)
    twin.clock.advance(twin.settings.job_seconds)
    assert twin.front.assignments() >= {twin.assignment(*names)}


def test_an_assignment_exists_only_when_its_job_has_succeeded(twin: Twin) -> None:
    job = create(twin)
    assert job["Status"] == "IN_PROGRESS"
    assert job["CreatedDate"] == twin.clock.now()
    assert (job["TargetId"], job["TargetType"], job["PrincipalType"]) == (twin.accounts["payments-dev"], "AWS_ACCOUNT", "USER")
    twin.clock.advance(1.9)
    assert creation(twin, job["RequestId"])["Status"] == "IN_PROGRESS"
    assert twin.assignments() == set()
    twin.clock.advance(0.1)
    assert creation(twin, job["RequestId"])["Status"] == "SUCCEEDED"
    assert twin.front.assignments() == {twin.assignment(*ALICE_DEV)}


def test_an_assignment_is_gone_only_when_its_job_has_succeeded(twin: Twin) -> None:
    granted(twin)
    job = delete(twin)
    assert job["Status"] == "IN_PROGRESS"
    assert len(twin.assignments()) == 1
    twin.clock.advance(2)
    assert deletion(twin, job["RequestId"])["Status"] == "SUCCEEDED"
    assert twin.assignments() == set()


def test_creating_what_exists_succeeds_as_a_job(twin: Twin) -> None:
    granted(twin)
    job = create(twin)
    twin.clock.advance(2)
    assert creation(twin, job["RequestId"])["Status"] == "SUCCEEDED"
    assert len(twin.assignments()) == 1


def test_deleting_what_is_not_there_is_not_found(twin: Twin) -> None:
    assert code(lambda: delete(twin)) == "ResourceNotFoundException"
    create(twin)
    twin.clock.advance(2)
    delete(twin)
    twin.clock.advance(2)
    assert code(lambda: delete(twin)) == "ResourceNotFoundException"


@pytest.mark.parametrize(
    ("second", "expected"),
    [
        (("alice@example.com", "payments-dev", "PowerUserAccess"), "ConflictException"),
        (("bob@example.com", "payments-dev", "PowerUserAccess"), "ConflictException"),
        (("alice@example.com", "payments-dev", "ReadOnlyAccess"), "ok"),
        (("alice@example.com", "payments-prod", "PowerUserAccess"), "ok"),
    ],
)
def test_one_job_at_a_time_for_an_account_and_permission_set(twin: Twin, second: tuple[str, str, str], expected: str) -> None:
    create(twin)
    assert code(lambda: create(twin, second)) == expected
    twin.clock.advance(2)
    assert code(lambda: create(twin, second)) == "ok"


def test_a_deletion_conflicts_with_a_running_creation(twin: Twin) -> None:
    granted(twin)
    create(twin, ("bob@example.com", "payments-dev", "PowerUserAccess"))
    assert code(lambda: delete(twin)) == "ConflictException"


def test_no_more_than_so_many_creations_are_open(twin: Twin) -> None:
    twin.settings.open_creations = 2
    create(twin)
    create(twin, ALICE_PROD)
    third = ("bob@example.com", "payments-dev", "ReadOnlyAccess")
    with pytest.raises(ClientError, match=r"ThrottlingException.*too many requests processing"):
        create(twin, third)
    twin.clock.advance(2)
    assert code(lambda: create(twin, third)) == "ok"


def test_deletions_do_not_count_as_open_creations(twin: Twin) -> None:
    granted(twin)
    twin.settings.open_creations = 1
    delete(twin)
    assert code(lambda: create(twin, ALICE_PROD)) == "ok"


def test_more_than_twenty_calls_a_second_are_throttled_whatever_they_are(twin: Twin) -> None:
    twin.settings.calls_per_second = 20
    reads: list[Callable[[], Any]] = [twin.sso.list_instances, lambda: twin.sso.list_permission_sets(InstanceArn=twin.instance_arn)]
    assert [code(reads[number % 2]) for number in range(20)] == ["ok"] * 20
    assert code(lambda: create(twin)) == "ThrottlingException"
    assert code(reads[0]) == "ThrottlingException"
    twin.clock.advance(0.99)
    assert code(reads[0]) == "ThrottlingException"
    twin.clock.advance(0.01)
    assert code(lambda: create(twin)) == "ok"


def test_the_window_slides(twin: Twin) -> None:
    twin.settings.calls_per_second = 2
    twin.sso.list_instances()
    twin.clock.advance(0.6)
    twin.sso.list_instances()
    twin.clock.advance(0.5)
    assert [code(twin.sso.list_instances) for _ in range(2)] == ["ok", "ThrottlingException"]


@pytest.mark.parametrize(
    ("names", "reason"),
    [
        (("alice@example.com", "999999999999", "PowerUserAccess"), "not a member of the organization"),
        ((UNKNOWN_PRINCIPAL, "payments-dev", "PowerUserAccess"), "USER 11111111-2222-4333-8444-555555555555 not found"),
    ],
)
def test_what_does_not_exist_fails_silently(twin: Twin, names: tuple[str, str, str], reason: str) -> None:
    job = create(twin, names)
    assert job["Status"] == "IN_PROGRESS"
    assert "FailureReason" not in job
    twin.clock.advance(2)
    status = creation(twin, job["RequestId"])
    assert status["Status"] == "FAILED"
    assert reason in status["FailureReason"]
    assert twin.assignments() == set()


def test_a_full_role_quota_fails_silently_but_not_for_a_role_that_is_there(twin: Twin) -> None:
    granted(twin)
    twin.settings.role_quotas = {twin.accounts["payments-dev"]: 1}
    refused = create(twin, ("alice@example.com", "payments-dev", "ReadOnlyAccess"))
    admitted = create(twin, ("bob@example.com", "payments-dev", "PowerUserAccess"))
    elsewhere = create(twin, ALICE_PROD)
    twin.clock.advance(2)
    status = creation(twin, refused["RequestId"])
    assert (status["Status"], "RolesPerAccount: 1" in status["FailureReason"]) == ("FAILED", True)
    assert creation(twin, admitted["RequestId"])["Status"] == "SUCCEEDED"
    assert creation(twin, elsewhere["RequestId"])["Status"] == "SUCCEEDED"


def test_an_open_creation_takes_its_role_at_once(twin: Twin) -> None:
    twin.settings.role_quota_per_account = 1
    create(twin)
    second = create(twin, ("alice@example.com", "payments-dev", "ReadOnlyAccess"))
    twin.clock.advance(2)
    assert creation(twin, second["RequestId"])["Status"] == "FAILED"


@pytest.mark.parametrize(
    ("names", "expected"),
    [
        (("alice@example.com", "payments-dev", UNKNOWN_SET), "ResourceNotFoundException"),
        (("alice@example.com", "not-a-number", "ReadOnlyAccess"), "ValidationException"),
        (("alice@example.com", "payments-dev", "arn:aws:iam::aws:policy/ReadOnlyAccess"), "ValidationException"),
        (("not an id", "payments-dev", "ReadOnlyAccess"), "ValidationException"),
    ],
)
def test_what_aws_refuses_at_once(twin: Twin, names: tuple[str, str, str], expected: str) -> None:
    assert code(lambda: create(twin, names)) == expected
    assert code(lambda: delete(twin, names)) == expected
    assert twin.front.jobs() == ()


def test_what_is_gone_is_not_found_or_can_not_be_taken_away(twin: Twin) -> None:
    granted(twin)
    granted(twin, ALICE_PROD)
    place: dict[str, Any] = {"InstanceArn": twin.instance_arn, "PermissionSetArn": twin.permission_sets["ReadOnlyAccess"]}
    twin.organizations.remove_account_from_organization(AccountId=twin.accounts["payments-prod"])
    assert code(lambda: twin.sso.list_account_assignments(**place, AccountId=twin.accounts["payments-prod"])) == "ResourceNotFoundException"
    user = twin.users["alice@example.com"]
    twin.identity_store.delete_user(IdentityStoreId=twin.identity_store_id, UserId=user)
    by_principal: dict[str, Any] = {"InstanceArn": twin.instance_arn, "PrincipalId": user, "PrincipalType": "USER"}
    assert code(lambda: twin.sso.list_account_assignments_for_principal(**by_principal)) == "ResourceNotFoundException"
    job = delete(twin)
    twin.clock.advance(2)
    assert "was not found in directory" in deletion(twin, job["RequestId"])["FailureReason"]
    assert twin.assignment(*ALICE_DEV) in twin.front.assignments()


def test_a_closed_account_takes_and_gives_nothing(twin: Twin) -> None:
    granted(twin)
    twin.organizations.close_account(AccountId=twin.accounts["payments-dev"])
    for job, look in ((create(twin, ("bob@example.com", *ALICE_DEV[1:])), creation), (None, deletion)):
        started = job or delete(twin)
        twin.clock.advance(2)
        assert "takes longer" in look(twin, started["RequestId"])["FailureReason"]
    assert twin.front.assignments() == {twin.assignment(*ALICE_DEV)}


# Which account calls

MANAGEMENT_ALONE = re.compile(
    r"only call this operation from the management account\.|must be called from the management account|Only the account that owns"
)
NOT_ALONE = re.compile(
    r"a member account that is a delegated administrator|from any account in a organization|call from operation from a member"
)


@pytest.mark.parametrize("service", ["sso-admin", "organizations", "identitystore"])
def test_every_call_is_whose_its_documentation_says(service: str) -> None:
    model = botocore.session.get_session().get_service_model(service)
    for name in model.operation_names:
        words = re.sub("<[^>]+>", "", model.operation_model(name).documentation)
        target = f"{model.metadata['targetPrefix']}.{name}"
        assert may_call("management", target)
        if MANAGEMENT_ALONE.search(words):
            assert not may_call("delegated", target), name
        elif NOT_ALONE.search(words) or service == "identitystore":
            assert may_call("delegated", target), name


def test_a_delegated_administrator_asks_by_account_and_not_by_principal(twin: Twin) -> None:
    granted(twin)
    twin.settings.change({"caller": "delegated"})
    by_principal: dict[str, Any] = {
        "InstanceArn": twin.instance_arn,
        "PrincipalId": twin.users["alice@example.com"],
        "PrincipalType": "USER",
    }
    place: dict[str, Any] = {"AccountId": twin.accounts["payments-dev"], "PermissionSetArn": twin.permission_sets["PowerUserAccess"]}
    assert code(lambda: twin.sso.list_account_assignments_for_principal(**by_principal)) == "AccessDeniedException"
    assert code(lambda: twin.sso.list_account_assignments(InstanceArn=twin.instance_arn, **place)) == "ok"
    assert code(twin.organizations.list_accounts) == "ok"
    assert code(lambda: twin.organizations.create_account(AccountName="new", Email="new@example.com")) == "AccessDeniedException"
    assert code(lambda: delete(twin)) == "ok"


def test_a_delegated_administrator_leaves_the_management_account_and_its_permission_sets_alone(twin: Twin) -> None:
    in_management = ("bob@example.com", "management", "ReadOnlyAccess")
    create(twin, in_management)
    granted(twin)
    twin.settings.change({"caller": "delegated"})
    assert code(lambda: create(twin, in_management)) == "AccessDeniedException"
    assert code(lambda: delete(twin, in_management)) == "AccessDeniedException"
    assert code(lambda: create(twin, ALICE_PROD)) == "AccessDeniedException"
    assert code(lambda: create(twin, ("bob@example.com", "payments-prod", "PowerUserAccess"))) == "ok"
    arn = twin.permission_sets["ReadOnlyAccess"]
    describe = twin.sso.describe_permission_set
    assert code(lambda: describe(InstanceArn=twin.instance_arn, PermissionSetArn=arn)) == "ok"
    update = twin.sso.update_permission_set
    assert code(lambda: update(InstanceArn=twin.instance_arn, PermissionSetArn=arn, Description="x")) == "AccessDeniedException"


def test_an_unknown_instance_or_job_is_not_found(twin: Twin) -> None:
    other = "arn:aws:sso:::instance/ssoins-0000000000000000"
    assert code(lambda: twin.sso.list_account_assignment_creation_status(InstanceArn=other)) == "ResourceNotFoundException"
    assert code(lambda: creation(twin, UNKNOWN_PRINCIPAL)) == "ResourceNotFoundException"
    job = create(twin)
    assert code(lambda: deletion(twin, job["RequestId"])) == "ResourceNotFoundException"


def test_job_lists_are_newest_first_and_filtered_by_status(twin: Twin) -> None:
    first = create(twin)
    twin.clock.advance(2)
    second = create(twin, ALICE_PROD)
    jobs = twin.sso.list_account_assignment_creation_status(InstanceArn=twin.instance_arn)["AccountAssignmentsCreationStatus"]
    assert [(job["RequestId"], job["Status"]) for job in jobs] == [
        (second["RequestId"], "IN_PROGRESS"),
        (first["RequestId"], "SUCCEEDED"),
    ]
    running = twin.sso.list_account_assignment_creation_status(InstanceArn=twin.instance_arn, Filter={"Status": "IN_PROGRESS"})
    assert [job["RequestId"] for job in running["AccountAssignmentsCreationStatus"]] == [second["RequestId"]]
    removal = delete(twin)
    removals = twin.sso.list_account_assignment_deletion_status(InstanceArn=twin.instance_arn)
    assert [job["RequestId"] for job in removals["AccountAssignmentsDeletionStatus"]] == [removal["RequestId"]]


def test_lists_come_in_pages_that_changes_do_not_upset(twin: Twin) -> None:
    people = sorted(twin.users)
    for person in people:
        granted(twin, (person, "payments-dev", "PowerUserAccess"))
    place = {
        "InstanceArn": twin.instance_arn,
        "AccountId": twin.accounts["payments-dev"],
        "PermissionSetArn": twin.permission_sets["PowerUserAccess"],
        "MaxResults": 2,
    }
    page = twin.sso.list_account_assignments(**place)  # type: ignore[arg-type]
    seen = [row["PrincipalId"] for row in page["AccountAssignments"]]
    gone = next(person for person in people if twin.users[person] == seen[0])
    delete(twin, (gone, "payments-dev", "PowerUserAccess"))
    twin.clock.advance(2)
    while token := page.get("NextToken"):
        page = twin.sso.list_account_assignments(**place, NextToken=token)  # type: ignore[arg-type]
        seen += [row["PrincipalId"] for row in page["AccountAssignments"]]
    assert sorted(seen) == sorted(twin.users.values())
    assert code(lambda: twin.sso.list_account_assignments(**place, NextToken="bm9uc2Vuc2U=")) == "ValidationException"  # type: ignore[arg-type]


def test_a_small_page_size_forces_paging_on_clients_that_ask_for_none(twin: Twin) -> None:
    twin.settings.page_size = 1
    granted(twin)
    granted(twin, ALICE_PROD)
    pages = list(
        twin.sso.get_paginator("list_account_assignments_for_principal").paginate(
            InstanceArn=twin.instance_arn, PrincipalId=twin.users["alice@example.com"], PrincipalType="USER"
        )
    )
    assert [len(page["AccountAssignments"]) for page in pages] == [1, 1]


def test_what_a_person_has_access_to_includes_their_groups_and_can_be_narrowed(twin: Twin) -> None:
    granted(twin)
    group = twin.groups["/engineering/payments"]
    twin.sso.create_account_assignment(
        **twin.key("x", "payments-prod", "ReadOnlyAccess") | {"PrincipalType": "GROUP", "PrincipalId": group}
    )
    twin.clock.advance(2)
    principal: dict[str, Any] = {
        "InstanceArn": twin.instance_arn,
        "PrincipalId": twin.users["alice@example.com"],
        "PrincipalType": "USER",
    }
    rows = twin.sso.list_account_assignments_for_principal(**principal)["AccountAssignments"]
    assert {(row["AccountId"], row["PrincipalType"]) for row in rows} == {
        (twin.accounts["payments-dev"], "USER"),
        (twin.accounts["payments-prod"], "GROUP"),
    }
    narrowed = twin.sso.list_account_assignments_for_principal(**principal, Filter={"AccountId": twin.accounts["payments-prod"]})
    assert [row["PrincipalId"] for row in narrowed["AccountAssignments"]] == [group]


def test_provisioning_lists_follow_from_the_assignments(twin: Twin) -> None:
    granted(twin)
    arn = twin.permission_sets["PowerUserAccess"]
    accounts = twin.sso.list_accounts_for_provisioned_permission_set(InstanceArn=twin.instance_arn, PermissionSetArn=arn)
    assert accounts["AccountIds"] == [twin.accounts["payments-dev"]]
    sets = twin.sso.list_permission_sets_provisioned_to_account(InstanceArn=twin.instance_arn, AccountId=twin.accounts["payments-dev"])
    assert sets["PermissionSets"] == [arn]


@pytest.mark.parametrize(
    ("fault", "expected"),
    [("throttle", "ThrottlingException"), ("conflict", "ConflictException"), ("server_error", "InternalServerException")],
)
def test_a_fault_that_is_turned_up_has_no_effect_on_the_state(twin: Twin, fault: str, expected: str) -> None:
    twin.settings.change({fault: 1.0})
    assert code(lambda: create(twin)) == expected
    assert twin.front.jobs() == ()


def test_a_failed_job_leaves_things_as_they_were(twin: Twin) -> None:
    granted(twin)
    twin.settings.fail_job = 1.0
    job = delete(twin)
    twin.clock.advance(2)
    assert deletion(twin, job["RequestId"])["Status"] == "FAILED"
    assert len(twin.assignments()) == 1


def test_a_slow_job_takes_its_time(twin: Twin) -> None:
    twin.settings.change({"slow_job": 1.0, "slow_job_seconds": 90})
    job = create(twin)
    twin.clock.advance(89)
    assert creation(twin, job["RequestId"])["Status"] == "IN_PROGRESS"
    twin.clock.advance(1)
    assert creation(twin, job["RequestId"])["Status"] == "SUCCEEDED"


def test_chances_are_drawn_from_the_seed(twin: Twin) -> None:
    def draws() -> list[str]:
        twin.settings.change({"throttle": 0.5, "seed": 7})
        twin.front.reseed()
        return [code(twin.sso.list_instances) for _ in range(40)]

    first = draws()
    assert {"ok", "ThrottlingException"} == set(first)
    assert draws() == first


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ({"job_secs": 1}, "job_secs: no such setting"),
        ({"fail_job": 1.5}, "fail_job: must be a number from 0 to 1"),
        ({"open_creations": 1.5}, "open_creations: must be a whole number that is 0 or more"),
        ({"job_seconds": "soon"}, "job_seconds: must be a number"),
        ({"open_creations": True}, "open_creations: must be a whole number"),
        ({"role_quotas": {"111122223333": "none"}}, "role_quotas: must be an object"),
        ({"page_size": 0}, "page_size: must be a whole number from 1 to 100"),
    ],
)
def test_a_wrong_setting_is_named_and_nothing_changes(twin: Twin, values: dict[str, Any], message: str) -> None:
    before = twin.settings.as_dict()
    with pytest.raises(ValueError, match=message):
        twin.settings.change({"slow_job": 0.5} | values)
    assert twin.settings.as_dict() == before
