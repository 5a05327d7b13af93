"""The front for assignment calls of IAM Identity Center: what moto leaves out, as AWS does it.

Sources: the limits page (https://docs.aws.amazon.com/singlesignon/latest/userguide/limits.html: "a collective throttle maximum of
20 transactions per second", "a maximum rate of 10 outstanding async calls" for CreateAccountAssignment, "these quotas cannot be
changed") and the sso-admin service model. Over the number of open creations AWS was seen to answer ``ThrottlingException`` ("There
are too many requests processing. Please try again later.", aws-samples/aws-iam-identity-center-extensions issue 87); the model
allows ``ServiceQuotaExceededException`` too, so clients must take both.

Jobs have no thread and no timer: their end is worked out from the clock at each call.
"""

from __future__ import annotations

import base64
import json
import threading
import uuid
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Any, NamedTuple

from accessportal.kernel.clock import Clock
from accessportal.twin import cognito, cost_explorer, step_functions
from accessportal.twin.callers import MANAGEMENT, denied, may_call
from accessportal.twin.chances import Chances
from accessportal.twin.facts import Facts
from accessportal.twin.protocol import TARGET_PREFIX, Answer, LostAnswerError, TwinError, json_answer, parse
from accessportal.twin.settings import TwinSettings

CREATE = "CREATE"
DELETE = "DELETE"
# Seen in aws-samples/aws-identitycenter-codepipeline-auto-assignment issue 31.
_CLOSED = "AWS SSO is unable to complete your request at this time. Obtaining permissions to manage your AWS account '{}' takes longer."


class AssignmentKey(NamedTuple):
    """One assignment: who holds which permission set in which account."""

    account_id: str
    permission_set_arn: str
    principal_type: str
    principal_id: str


@dataclass(frozen=True, slots=True)
class Job:
    """One asynchronous job. Its end is settled when it starts: ``due_at`` (epoch seconds) and ``failure`` (empty: it succeeds)."""

    request_id: str
    verb: str
    instance_arn: str
    key: AssignmentKey
    created_at: float
    due_at: float
    failure: str

    def status(self, now: float) -> str:
        if now < self.due_at:
            return "IN_PROGRESS"
        return "FAILED" if self.failure else "SUCCEEDED"


class IdentityCenterTwin(Chances):
    """Assignments and their jobs. ``answer`` is the one way in; ``assignments`` is what is true now, without a call. ``on_job`` is told of
    each job before its caller is (the journal); ``restore`` is the way back."""

    def __init__(self, *, clock: Clock, settings: TwinSettings, facts: Facts, on_job: Callable[[Job], None] | None = None) -> None:
        super().__init__(settings)
        self.clock = clock
        self._facts = facts
        self._on_job = on_job
        # One lock for the front and everything that it passes on to: moto is not thread-safe.
        self.lock = threading.RLock()
        self.cognito = cognito.CognitoFaults(settings)
        self.cleaner = step_functions.StepFunctionsTwin(clock, settings)
        self.costs = cost_explorer.CostExplorerTwin(clock, settings)
        self._services = {
            TARGET_PREFIX: self.answer,
            cognito.TARGET_PREFIX: self.cognito.answer,
            step_functions.TARGET_PREFIX: self.cleaner.answer,
            cost_explorer.TARGET_PREFIX: self.costs.answer,
        }
        self._jobs: dict[str, Job] = {}
        self._open: dict[str, Job] = {}
        self._assignments: set[AssignmentKey] = set()
        self._admitted: deque[float] = deque()
        self._handlers: dict[str, Callable[[dict[str, Any], float], dict[str, Any]]] = {
            "CreateAccountAssignment": self._create,
            "DeleteAccountAssignment": self._delete,
            "DescribeAccountAssignmentCreationStatus": self._describe_creation,
            "DescribeAccountAssignmentDeletionStatus": self._describe_deletion,
            "ListAccountAssignmentCreationStatus": self._list_creations,
            "ListAccountAssignmentDeletionStatus": self._list_deletions,
            "ListAccountAssignments": self._list_assignments,
            "ListAccountAssignmentsForPrincipal": self._list_for_principal,
            "ListAccountsForProvisionedPermissionSet": self._list_accounts,
            "ListPermissionSetsProvisionedToAccount": self._list_permission_sets,
        }

    def answer_any(self, target: str, body: bytes, forward: Callable[[], Answer]) -> Answer:
        """Answer one call to any service, known by its ``X-Amz-Target``; what no front is for goes to ``forward``. Raises
        ``LostAnswerError`` as below."""
        prefix, _, operation = target.rpartition(".")
        with self.lock:
            if not may_call(self.settings.caller, target):
                return denied(operation).answer()
            service = self._services.get(f"{prefix}.")
            return forward() if service is None else service(operation, body, forward)

    def answer(self, operation: str, body: bytes, forward: Callable[[], Answer]) -> Answer:
        """Answer one sso-admin call as AWS does; what does not concern assignments goes to ``forward``. Raises ``LostAnswerError`` when the
        client is to get no answer, although the call took effect."""
        with self.lock:
            now = self._now()
            try:
                self._admit(now)
                payload = parse(operation, body)
                self._require_caller(operation, payload, now)
                handler = self._handlers.get(operation)
                answer = json_answer(handler(payload, now)) if handler else forward()
            except TwinError as error:
                return error.answer()
            if self._happens(self.settings.lose_answer):
                raise LostAnswerError(operation)
            return answer

    def assignments(self) -> frozenset[AssignmentKey]:
        """The assignments that exist now."""
        with self.lock:
            self._settle(self._now())
            return frozenset(self._assignments)

    def jobs(self) -> tuple[Job, ...]:
        """Every job ever started, oldest first."""
        with self.lock:
            return tuple(self._jobs.values())

    def jobs_to_keep(self, *, since: float) -> tuple[Job, ...]:
        """The jobs that a later run has to know: open ones, those since ``since``, and the last creation of each assignment."""
        with self.lock:
            self._settle(self._now())
            creations = {job.key: job for job in self._jobs.values() if job.verb == CREATE and not job.failure}
            last = {creations[key].request_id for key in self._assignments}
            return tuple(job for job in self._jobs.values() if job.due_at >= since or job.request_id in last)

    def restore(self, job: Job) -> None:
        """Take over a job from an earlier run; it ends when it would have ended."""
        with self.lock:
            self._jobs[job.request_id] = self._open[job.request_id] = job

    def reseed(self) -> None:
        """Start the random source anew from ``settings.seed``."""
        with self.lock:
            super().reseed()
            for service in (self.cognito, self.cleaner, self.costs):
                service.reseed()

    def _now(self) -> float:
        return self.clock.now().timestamp()

    def _admit(self, now: float) -> None:
        """Throttle: a sliding window of one second over admitted calls; a refused call does not count against the next."""
        while self._admitted and self._admitted[0] <= now - 1.0:
            self._admitted.popleft()
        limit = self.settings.calls_per_second
        if (limit and len(self._admitted) >= limit) or self._happens(self.settings.throttle):
            raise TwinError("ThrottlingException", "Rate exceeded")
        if limit:
            self._admitted.append(now)
        if self._happens(self.settings.server_error):
            raise TwinError("InternalServerException", "An unexpected internal service exception was encountered", status=500)

    def _require_caller(self, operation: str, payload: dict[str, Any], now: float) -> None:
        """A delegated administrator changes neither access to the management account nor permission sets that are provisioned there."""
        if self.settings.caller == MANAGEMENT:
            return
        changes = not operation.startswith(("List", "Describe", "Get"))
        arn = payload.get("PermissionSetArn", "")
        there = {key.permission_set_arn for key in self._settled(now) if self._facts.is_management_account(key.account_id)}
        to_management = self._facts.is_management_account(payload.get("TargetId", ""))
        if not may_call(self.settings.caller, f"{TARGET_PREFIX}{operation}") or (changes and (to_management or arn in there)):
            raise denied(operation)

    def _settle(self, now: float) -> None:
        """Make true what finished jobs have done, in the order of their ends."""
        for job in sorted((job for job in self._open.values() if job.due_at <= now), key=lambda job: job.due_at):
            del self._open[job.request_id]
            if job.failure:
                continue
            if job.verb == CREATE:
                self._assignments.add(job.key)
            else:
                self._assignments.discard(job.key)

    # Writes

    def _create(self, payload: dict[str, Any], now: float) -> dict[str, Any]:
        key = self._checked_key(payload, now)
        if sum(job.verb == CREATE for job in self._open.values()) >= self.settings.open_creations:
            raise TwinError("ThrottlingException", "There are too many requests processing. Please try again later.")
        job = self._start(CREATE, payload["InstanceArn"], key, now, failure=self._creation_failure(payload["InstanceArn"], key))
        return {"AccountAssignmentCreationStatus": _full_status(job, now)}

    def _delete(self, payload: dict[str, Any], now: float) -> dict[str, Any]:
        key = self._checked_key(payload, now)
        if key not in self._assignments:
            raise TwinError("ResourceNotFoundException", f"Account assignment for {key.principal_type} {key.principal_id} not found")
        job = self._start(DELETE, payload["InstanceArn"], key, now, failure=self._deletion_failure(payload["InstanceArn"], key))
        return {"AccountAssignmentDeletionStatus": _full_status(job, now)}

    def _checked_key(self, payload: dict[str, Any], now: float) -> AssignmentKey:
        """The assignment that a write names, when AWS would start a job on it at this moment."""
        self._settle(now)
        key = AssignmentKey(payload["TargetId"], payload["PermissionSetArn"], payload["PrincipalType"], payload["PrincipalId"])
        self._check_permission_set(payload["InstanceArn"], key.permission_set_arn)
        busy = any(job.key[:2] == key[:2] for job in self._open.values())
        if busy or self._happens(self.settings.conflict):
            raise TwinError(
                "ConflictException", f"There is already an operation in progress for {key.permission_set_arn} on {key.account_id}"
            )
        return key

    def _creation_failure(self, instance_arn: str, key: AssignmentKey) -> str:
        """Why the job will end ``FAILED``. AWS takes such a call and says nothing until the job is described."""
        if not self._facts.has_account(key.account_id):
            return f"Received a 404 status error: account {key.account_id} is not a member of the organization"
        if not self._facts.is_open(key.account_id):
            return _CLOSED.format(key.account_id)
        if not self._facts.has_principal(instance_arn, key.principal_type, key.principal_id):
            return f"Received a 404 status error: {key.principal_type} {key.principal_id} not found"
        quota = self.settings.role_quota(key.account_id)
        keys = [*self._assignments, *(job.key for job in self._open.values() if job.verb == CREATE)]
        roles = {one.permission_set_arn for one in keys if one.account_id == key.account_id}
        if key.permission_set_arn not in roles and len(roles) >= quota:
            return f"Received a 409 status error: Cannot exceed quota for RolesPerAccount: {quota}"
        return ""

    def _deletion_failure(self, instance_arn: str, key: AssignmentKey) -> str:
        if not self._facts.is_open(key.account_id):
            return _CLOSED.format(key.account_id)
        # Whoever is deleted through the Identity Store stays assigned, and can't be taken away any more
        # (seen in hashicorp/terraform-provider-aws issue 19341).
        if not self._facts.has_principal(instance_arn, key.principal_type, key.principal_id):
            return f"Received a 404 status error: the {key.principal_type} assignee {key.principal_id} was not found in directory"
        return ""

    def _start(self, verb: str, instance_arn: str, key: AssignmentKey, now: float, *, failure: str) -> Job:
        if not failure and self._happens(self.settings.fail_job):
            failure = "An unexpected internal service exception was encountered"
        seconds = self.settings.slow_job_seconds if self._happens(self.settings.slow_job) else self.settings.job_seconds
        job = Job(str(uuid.uuid4()), verb, instance_arn, key, now, now + seconds, failure)
        if self._on_job is not None:
            self._on_job(job)
        self._jobs[job.request_id] = self._open[job.request_id] = job
        return job

    # Reads

    def _describe_creation(self, payload: dict[str, Any], now: float) -> dict[str, Any]:
        job = self._job(payload["AccountAssignmentCreationRequestId"], CREATE)
        return {"AccountAssignmentCreationStatus": _full_status(job, now)}

    def _describe_deletion(self, payload: dict[str, Any], now: float) -> dict[str, Any]:
        job = self._job(payload["AccountAssignmentDeletionRequestId"], DELETE)
        return {"AccountAssignmentDeletionStatus": _full_status(job, now)}

    def _list_creations(self, payload: dict[str, Any], now: float) -> dict[str, Any]:
        return self._page("AccountAssignmentsCreationStatus", self._statuses(payload, CREATE, now), payload)

    def _list_deletions(self, payload: dict[str, Any], now: float) -> dict[str, Any]:
        return self._page("AccountAssignmentsDeletionStatus", self._statuses(payload, DELETE, now), payload)

    def _list_assignments(self, payload: dict[str, Any], now: float) -> dict[str, Any]:
        self._check_permission_set(payload["InstanceArn"], payload["PermissionSetArn"])
        if not self._facts.has_account(payload["AccountId"]):
            raise TwinError("ResourceNotFoundException", f"Account {payload['AccountId']} not found")
        wanted = (payload["AccountId"], payload["PermissionSetArn"])
        return self._page("AccountAssignments", _rows(key for key in self._settled(now) if key[:2] == wanted), payload)

    def _list_for_principal(self, payload: dict[str, Any], now: float) -> dict[str, Any]:
        """What the principal has access to: for a user, through groups too, with the group named as the principal."""
        self._check_instance(payload["InstanceArn"])
        if not self._facts.has_principal(payload["InstanceArn"], payload["PrincipalType"], payload["PrincipalId"]):
            raise TwinError("ResourceNotFoundException", f"{payload['PrincipalType']} {payload['PrincipalId']} not found")
        account_id = (payload.get("Filter") or {}).get("AccountId")
        principals = {(payload["PrincipalType"], payload["PrincipalId"])}
        if payload["PrincipalType"] == "USER":
            principals |= {("GROUP", group_id) for group_id in self._facts.groups_of(payload["InstanceArn"], payload["PrincipalId"])}
        keys = (key for key in self._settled(now) if key[2:] in principals and account_id in (None, key.account_id))
        return self._page("AccountAssignments", _rows(keys), payload)

    def _list_accounts(self, payload: dict[str, Any], now: float) -> dict[str, Any]:
        self._check_permission_set(payload["InstanceArn"], payload["PermissionSetArn"])
        accounts = {key.account_id for key in self._settled(now) if key.permission_set_arn == payload["PermissionSetArn"]}
        return self._page("AccountIds", {account: account for account in accounts}, payload)

    def _list_permission_sets(self, payload: dict[str, Any], now: float) -> dict[str, Any]:
        self._check_instance(payload["InstanceArn"])
        arns = {key.permission_set_arn for key in self._settled(now) if key.account_id == payload["AccountId"]}
        return self._page("PermissionSets", {arn: arn for arn in arns}, payload)

    def _settled(self, now: float) -> Iterator[AssignmentKey]:
        self._settle(now)
        return iter(self._assignments)

    def _statuses(self, payload: dict[str, Any], verb: str, now: float) -> dict[str, Any]:
        self._check_instance(payload["InstanceArn"])
        wanted = (payload.get("Filter") or {}).get("Status")
        jobs = (job for job in self._jobs.values() if job.verb == verb and wanted in (None, job.status(now)))
        # Newest first: the page is cut in the order of the keys.
        return {f"{1e11 - job.created_at:018.6f}{job.request_id}": _short_status(job, now) for job in jobs}

    def _page(self, name: str, rows: dict[str, Any], payload: dict[str, Any]) -> dict[str, Any]:
        """One page of ``rows``, in the order of their keys; the token names the last key, so that changes between pages do no harm."""
        size = min(payload.get("MaxResults") or self.settings.page_size, self.settings.page_size)
        after = _decode_token(payload["NextToken"]) if payload.get("NextToken") else ""
        keys = sorted(key for key in rows if key > after)
        page: dict[str, Any] = {name: [rows[key] for key in keys[:size]]}
        if len(keys) > size:
            page["NextToken"] = base64.urlsafe_b64encode(json.dumps(keys[size - 1]).encode()).decode()
        return page

    def _job(self, request_id: str, verb: str) -> Job:
        job = self._jobs.get(request_id)
        if job is None or job.verb != verb:
            raise TwinError("ResourceNotFoundException", f"Request {request_id} not found")
        return job

    def _check_instance(self, instance_arn: str) -> None:
        if not self._facts.has_instance(instance_arn):
            raise TwinError("ResourceNotFoundException", f"Instance {instance_arn} not found")

    def _check_permission_set(self, instance_arn: str, permission_set_arn: str) -> None:
        self._check_instance(instance_arn)
        if not self._facts.has_permission_set(instance_arn, permission_set_arn):
            raise TwinError("ResourceNotFoundException", f"Could not find PermissionSet with id {permission_set_arn.rpartition('/')[2]}")


def _short_status(job: Job, now: float) -> dict[str, Any]:
    return {"Status": job.status(now), "RequestId": job.request_id, "CreatedDate": job.created_at}


def _full_status(job: Job, now: float) -> dict[str, Any]:
    status = _short_status(job, now) | {
        "TargetId": job.key.account_id,
        "TargetType": "AWS_ACCOUNT",
        "PermissionSetArn": job.key.permission_set_arn,
        "PrincipalType": job.key.principal_type,
        "PrincipalId": job.key.principal_id,
    }
    if status["Status"] == "FAILED":
        status["FailureReason"] = job.failure
    return status


def _rows(keys: Iterable[AssignmentKey]) -> dict[str, Any]:
    return {
        "|".join(key): {
            "AccountId": key.account_id,
            "PermissionSetArn": key.permission_set_arn,
            "PrincipalType": key.principal_type,
            "PrincipalId": key.principal_id,
        }
        for key in keys
    }


def _decode_token(token: str) -> str:
    try:
        key = json.loads(base64.urlsafe_b64decode(token))
    except ValueError as error:
        raise TwinError("ValidationException", "The NextToken is not valid") from error
    return str(key)
