"""What is so when all is quiet: requests, claims and real assignments held against each other and against what people were told."""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from functools import partial
from pathlib import Path

import boto3
from botocore.config import Config

from accessportal.access_requests import queries
from accessportal.access_requests.states import AccessRequest, Status, Work
from accessportal.assignments import queries as assignments
from accessportal.assignments.states import OUTSIDE_CLAIM, Assignment, AssignmentKey, AssignmentState
from accessportal.catalog.states import PrincipalType
from accessportal.kernel.actors import system
from accessportal.kernel.clock import SystemClock
from accessportal.kernel.pages import Page, every
from accessportal.twin.identity_center import AssignmentKey as TwinKey
from benchmarks.chaos_people import Saying, Told

_ACTOR = system("chaos")
# Two clocks are read, one after the other.
_SLACK_SECONDS = 2.0
_USUAL = timedelta(seconds=10)
_NEVER_MIND = frozenset({"302", "409", "429"})
"""Answers to something sent again that say nothing of the first time: sign in anew, it stands so by now, too much at once."""


@dataclass(frozen=True, slots=True)
class Job:
    """What Identity Center did, and when it was told to (epoch seconds)."""

    verb: str
    key: AssignmentKey
    created_at: float


@dataclass(frozen=True, slots=True)
class Truth:
    """``real`` is what Identity Center holds; ``jobs`` by their ids, those that failed left out."""

    requests: tuple[AccessRequest, ...]
    claims: Mapping[AssignmentKey, Collection[str]]
    real: frozenset[AssignmentKey]
    jobs: Mapping[str, Job]
    at: datetime


def read(journal: Path) -> Truth:
    """Everything, from the tables, from Identity Center's lists, and the jobs from the twin's ``journal``."""
    held = [one for state in AssignmentState for one in every(partial(_assignments, state))]
    return Truth(
        requests=all_requests(),
        claims={one.key: one.claims for one in held},
        real=frozenset(_real()),
        jobs=dict(_jobs(journal)),
        at=SystemClock().now(),
    )


def all_requests() -> tuple[AccessRequest, ...]:
    return tuple(one for status in Status for one in every(partial(_requests, status)))


def _requests(status: Status, cursor: str | None) -> Page[AccessRequest]:
    return queries.list_by_status(status=status, actor=_ACTOR, now=SystemClock().now(), cursor=cursor, limit=200)


def _assignments(state: AssignmentState, cursor: str | None) -> Page[Assignment]:
    return assignments.list_by_state(state=state, cursor=cursor, limit=200)


def _real() -> Iterator[AssignmentKey]:
    # These calls count with the portal's own.
    patient = Config(retries={"total_max_attempts": 10, "mode": "adaptive"})
    sso, people = boto3.client("sso-admin", config=patient), boto3.client("identitystore")
    instance = sso.list_instances()["Instances"][0]
    users = people.get_paginator("list_users").paginate(IdentityStoreId=instance["IdentityStoreId"]).search("Users[].UserId")
    pages = sso.get_paginator("list_account_assignments_for_principal")
    for user in users:
        asked = pages.paginate(InstanceArn=instance["InstanceArn"], PrincipalId=user, PrincipalType="USER")
        for row in asked.search("AccountAssignments[]"):
            yield AssignmentKey(PrincipalType.USER, row["PrincipalId"], row["AccountId"], row["PermissionSetArn"])


def _jobs(journal: Path) -> Iterator[tuple[str, Job]]:
    with journal.open() as lines:
        for line in lines:
            entry = json.loads(line)
            if entry["kind"] == "job" and not entry["job"]["failure"]:
                job = entry["job"]
                yield job["request_id"], Job(job["verb"], _key_in(TwinKey(*job["key"])), job["created_at"])


def _key_in(key: TwinKey) -> AssignmentKey:
    return AssignmentKey(PrincipalType(key.principal_type), key.principal_id, key.account_id, key.permission_set_arn)


def key_of(request: AccessRequest) -> AssignmentKey:
    target = request.target
    return AssignmentKey(
        PrincipalType(target["principal_type"]), target["principal_id"], target["account_id"], target["permission_set_arn"]
    )


def is_open_work(request: AccessRequest, now: datetime) -> bool:
    """Something is still to be done for it outside."""
    return request.status is Status.ACTIVE and (request.work is not None or request.is_over(now))


# What people were told


def contradictions(truth: Truth, sayings: Sequence[Saying]) -> Iterator[str]:
    """What somebody was told that is not so. Whoever was told that nobody knows was told nothing."""
    rows = {request.request_id: request for request in truth.requests}
    by_form = defaultdict(list)
    for request in truth.requests:
        by_form[request.requested_by, request.submission_id].append(request)
    for saying in sayings:
        if saying.verb == "ask":
            yield from _of_asking(saying, by_form[saying.person, saying.submission_id])
        elif saying.told is Told.DONE:
            yield from _of_done(saying, rows.get(saying.request_id))
        elif saying.told is Told.REFUSED:
            known = [one for one in sayings if (one.person, one.verb, one.request_id) == (saying.person, saying.verb, saying.request_id)]
            if all(one.told is Told.REFUSED for one in known) and _is_theirs(saying, rows.get(saying.request_id)):
                yield f"{_words(saying)} refused, and it was done"


def _of_asking(saying: Saying, found: list[AccessRequest]) -> Iterator[str]:
    ids = [request.request_id for request in found]
    if len(ids) > 1:
        yield f"{_words(saying)} one request, and there are {ids}"
    elif saying.told is Told.DONE and ids != [saying.request_id]:
        yield f"{_words(saying)} accepted as {saying.request_id}, and there is {ids or 'nothing'}"
    elif saying.told is Told.REFUSED and ids and (saying.attempt == 1 or saying.shown not in _NEVER_MIND):
        yield f"{_words(saying)} refused, and there is {ids[0]}"


def _of_done(saying: Saying, row: AccessRequest | None) -> Iterator[str]:
    if row is None:
        yield f"{_words(saying)} done, and there is no such request"
    elif saying.verb == "approve" and not _is_theirs(saying, row):
        yield f"{_words(saying)} done, and approved have {sorted(row.approvals)}"
    elif saying.verb == "end" and row.expires_at.timestamp() > saying.at + _SLACK_SECONDS:
        yield f"{_words(saying)} done, and it ends at {row.expires_at}"


def _is_theirs(saying: Saying, row: AccessRequest | None) -> bool:
    """Whether the table says that this person did it."""
    if row is None:
        return False
    return saying.person in ({row.ended_by} if saying.verb == "end" else {*row.approvals, row.decided_by})


def _words(saying: Saying) -> str:
    return f"{saying.person} was told by {saying.shown} to {saying.verb} {saying.request_id or saying.submission_id}:"


# What is held


def differences(truth: Truth) -> Iterator[str]:
    """Where requests, claims and real assignments do not agree. Nothing is under way any more."""
    active = [request for request in truth.requests if request.status is Status.ACTIVE]
    for request in active:
        key, held = key_of(request), request.request_id
        if is_open_work(request, truth.at):
            yield f"{held} is not done with: {request.work} due {request.work_due_at}, ends {request.expires_at}: {request.work_error}"
        elif held not in truth.claims.get(key, ()) or key not in truth.real:
            yield f"{held} was granted to {request.subject_id} and is lost: {_where(key, truth)}"
    wanted = {key_of(request) for request in active}
    for key in truth.real - wanted:
        yield f"{key} is there, and no request holds it: {_where(key, truth)}"
    living = {request.request_id for request in active} | {OUTSIDE_CLAIM}
    for key, claims in truth.claims.items():
        for dead in set(claims) - living:
            yield f"{key} is claimed by {dead}, which is over"
    yield from _grants_without_request(truth)


def _where(key: AssignmentKey, truth: Truth) -> str:
    return f"claimed by {sorted(truth.claims.get(key, ())) or 'nobody'}, {'there' if key in truth.real else 'not there'}"


def _grants_without_request(truth: Truth) -> Iterator[str]:
    """Also of what is gone again by now."""
    by_key = defaultdict(list)
    for request in truth.requests:
        if request.status in {Status.ACTIVE, Status.REVOKED}:
            began = request.decided_at or request.requested_at
            by_key[key_of(request)].append((began.timestamp() - _SLACK_SECONDS, request.expires_at.timestamp() + _SLACK_SECONDS))
    for job_id, job in truth.jobs.items():
        if job.verb == "CREATE" and not any(began <= job.created_at <= ended for began, ended in by_key[job.key]):
            yield f"{job.key} was granted by job {job_id} while no request was active"


def taken_early(truth: Truth, *, since: float) -> Iterator[str]:
    """What was taken back after ``since`` (epoch seconds) before its end, which only a clock that is ahead can do."""
    for request, seconds in lateness(truth):
        if seconds < -_SLACK_SECONDS and request.expires_at.timestamp() + seconds >= since:
            yield f"{request.request_id} was taken back {-seconds:.0f} s before its end"


def lateness(truth: Truth) -> Iterator[tuple[AccessRequest, float]]:
    """Of what was taken away: seconds from its end until Identity Center was told, by Identity Center's clock alone."""
    for request in truth.requests:
        receipt = request.receipts[-1] if request.receipts else None
        if receipt is not None and receipt.work is Work.REVOKE and not receipt.kept_by and request.granted_at is not None:
            moment = _taken_at(request, receipt.job_id, truth)
            if moment is not None:
                yield request, moment - request.expires_at.timestamp()


def _taken_at(request: AccessRequest, job_id: str, truth: Truth) -> float | None:
    """Whoever finds it gone already has no job to tell of: then it was the first deletion since it was asked for."""
    if job_id in truth.jobs:
        return truth.jobs[job_id].created_at
    key, since = key_of(request), request.requested_at.timestamp()
    found = (job.created_at for job in truth.jobs.values() if (job.verb, job.key) == ("DELETE", key) and job.created_at >= since)
    return min(found, default=None)


def never_granted(truth: Truth) -> list[AccessRequest]:
    """Approved, and over before it could be granted, without anybody having ended it."""
    return [one for one in truth.requests if one.status is Status.REVOKED and one.granted_at is None and not one.ended_by]


def late_works(truth: Truth) -> Iterator[float]:
    """When a grant or a revocation was proved that came later than usual (epoch seconds)."""
    for request in truth.requests:
        began = request.decided_at or request.requested_at
        for due, done in ((began, request.granted_at), (request.expires_at, request.revoked_at)):
            # By a clock that was ahead it says nothing.
            if done is not None and done - due > _USUAL and done <= truth.at:
                yield done.timestamp()
