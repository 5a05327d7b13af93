"""Account assignments of IAM Identity Center, as the service has them: asynchronous jobs, and lists to read back."""

from __future__ import annotations

import enum
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, Protocol

from accessportal.aws.clients import assignment_client
from accessportal.aws.errors import Gone, Refused, Throttled, Transient, sorted_call
from accessportal.aws.identity_store import has_principal
from accessportal.aws.permission_sets import Instance, read_instances

_PAGE = 100  # the service's largest page


class JobStatus(enum.StrEnum):
    IN_PROGRESS = "IN_PROGRESS"
    SUCCEEDED = "SUCCEEDED"
    FAILED = "FAILED"


@dataclass(frozen=True, slots=True)
class Job:
    """A job as last heard of. ``reason`` is the service's word for a failure."""

    job_id: str
    status: JobStatus
    reason: str


@dataclass(frozen=True, slots=True)
class AssignmentTarget:
    """What the service knows an assignment by. ``principal_type`` is ``USER`` or ``GROUP``."""

    principal_type: str
    principal_id: str
    account_id: str
    permission_set_arn: str


class Pace(Protocol):
    """Keeps all workers' calls together under the service's limit (20 calls a second, an AWS quota)."""

    def wait_for_turn(self, *, is_urgent: bool = False) -> bool:
        """Return true when one call may be sent now; false when the queue is too long to wait. Urgent calls go first."""
        ...


class IdentityCenter:
    """The assignment calls, each sent once and at its turn. Errors are those of :mod:`accessportal.aws.errors`."""

    def __init__(self, *, pace: Pace) -> None:
        self._pace = pace

    def create_assignment(self, target: AssignmentTarget) -> Job:
        """Start creating. Starting it for what exists already is harmless: the job succeeds."""
        self._turn()
        answer = sorted_call(assignment_client().create_account_assignment, **_named(target))
        return _job(answer.get("AccountAssignmentCreationStatus"))

    def delete_assignment(self, target: AssignmentTarget) -> Job:
        """Start deleting. :class:`~accessportal.aws.errors.Gone` when there is nothing to delete."""
        self._turn(is_urgent=True)
        answer = sorted_call(assignment_client().delete_account_assignment, **_named(target))
        return _job(answer.get("AccountAssignmentDeletionStatus"))

    def creation_job(self, *, permission_set_arn: str, job_id: str) -> Job:
        self._turn()
        answer = sorted_call(
            assignment_client().describe_account_assignment_creation_status,
            InstanceArn=instance_arn_of(permission_set_arn),
            AccountAssignmentCreationRequestId=job_id,
        )
        return _job(answer.get("AccountAssignmentCreationStatus"))

    def deletion_job(self, *, permission_set_arn: str, job_id: str) -> Job:
        self._turn()
        answer = sorted_call(
            assignment_client().describe_account_assignment_deletion_status,
            InstanceArn=instance_arn_of(permission_set_arn),
            AccountAssignmentDeletionRequestId=job_id,
        )
        return _job(answer.get("AccountAssignmentDeletionStatus"))

    def is_present(self, target: AssignmentTarget) -> bool:
        """Read back whether the principal itself is assigned; nobody is in an account that is gone. It asks by account and permission set:
        what a principal has may be asked from the management account alone."""
        try:
            return target in self.list_assignments(account_id=target.account_id, permission_set_arn=target.permission_set_arn)
        except Gone:
            return False

    def has_principal(self, target: AssignmentTarget) -> bool:
        """Whether the user or group exists. One that was deleted may stay assigned for ever, which gives nobody access."""
        store_id = self._instance_of(target.permission_set_arn).identity_store_id
        return has_principal(store_id, principal_type=target.principal_type, principal_id=target.principal_id)

    def require_instance(self, target: AssignmentTarget) -> None:
        """Refuse credentials that do not see the instance here. To be asked after ``Gone``: from the wrong region or account everything is
        not found."""
        self._instance_of(target.permission_set_arn)

    def list_accounts_of(self, *, permission_set_arn: str) -> Iterator[str]:
        """List every account that the permission set is provisioned to. :raises Gone: when it does not exist."""
        call = assignment_client().list_accounts_for_provisioned_permission_set
        yield from self._rows(call, "AccountIds", permission_set_arn=permission_set_arn)

    def list_assignments(self, *, account_id: str, permission_set_arn: str) -> Iterator[AssignmentTarget]:
        """List every assignment of the permission set in the account. :raises Gone: when one of them does not exist."""
        call = assignment_client().list_account_assignments
        for row in self._rows(call, "AccountAssignments", permission_set_arn=permission_set_arn, AccountId=account_id):
            yield AssignmentTarget(row["PrincipalType"], row["PrincipalId"], row["AccountId"], row["PermissionSetArn"])

    def _rows(self, call: Callable[..., Any], rows: str, *, permission_set_arn: str, **kwargs: str) -> Iterator[Any]:
        token = ""
        while True:
            self._turn()
            try:
                answer = sorted_call(
                    call,
                    InstanceArn=instance_arn_of(permission_set_arn),
                    PermissionSetArn=permission_set_arn,
                    MaxResults=_PAGE,
                    **kwargs,
                    **({"NextToken": token} if token else {}),
                )
            except Gone:
                # From the wrong region or account the whole instance is not found, and that is no answer about what is in it.
                self._instance_of(permission_set_arn)
                raise
            if rows not in answer:
                raise Transient("UnreadableAnswer", f"The list {rows} is missing in it")
            yield from answer[rows]
            token = answer.get("NextToken", "")
            if not token:
                return

    def _instance_of(self, permission_set_arn: str) -> Instance:
        """:raises Refused: when these credentials do not see the instance here."""
        wanted = instance_arn_of(permission_set_arn)
        # The patient client may take longer than the lease of the assignment.
        for instance in read_instances(pace=self._turn, client=assignment_client):
            if instance.instance_arn == wanted:
                return instance
        raise Refused("InstanceNotFound", f"The instance {wanted} is not visible with these credentials in this region")

    def _turn(self, *, is_urgent: bool = False) -> None:
        if not self._pace.wait_for_turn(is_urgent=is_urgent):
            raise Throttled("PortalPace", "Too many calls to IAM Identity Center are waiting for their turn")


def _named(target: AssignmentTarget) -> dict[str, Any]:
    """The target as the calls that start a job name it."""
    return {
        "InstanceArn": instance_arn_of(target.permission_set_arn),
        "TargetId": target.account_id,
        "TargetType": "AWS_ACCOUNT",
        "PermissionSetArn": target.permission_set_arn,
        "PrincipalType": target.principal_type,
        "PrincipalId": target.principal_id,
    }


def instance_arn_of(permission_set_arn: str) -> str:
    """The instance that a permission set belongs to: its ARN names it (``arn:aws:sso:::permissionSet/ssoins-…/ps-…``)."""
    match = re.fullmatch(r"arn:([^:]+):sso:::(?:permissionSet|instance)/(ssoins-[0-9A-Za-z.-]+)/ps-[0-9A-Za-z.-]+", permission_set_arn)
    if match is None:
        raise Refused("InvalidArn", f"{permission_set_arn!r} is not the ARN of a permission set")
    return f"arn:{match[1]}:sso:::instance/{match[2]}"


def _job(row: object) -> Job:
    """:raises Transient: for an answer that says nothing, or something new: the call may have taken effect."""
    if not isinstance(row, dict) or not row.get("RequestId") or row.get("Status") not in set(JobStatus):
        raise Transient("UnreadableAnswer", f"What it says about the job can't be read: {row!r}")
    return Job(job_id=row["RequestId"], status=JobStatus(row["Status"]), reason=row.get("FailureReason", ""))
