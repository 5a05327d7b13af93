"""Holding every assignment of the portal's permission sets against the claims, and every claim against its request."""

from __future__ import annotations

from collections.abc import Collection
from datetime import datetime, timedelta
from functools import partial

from accessportal.access_requests import store
from accessportal.access_requests.kinds.aws_account import AwsAccount
from accessportal.access_requests.operations.working import carry_out
from accessportal.access_requests.states import AccessRequest, DeadClaim, ReconcileReport, Status, Work
from accessportal.assignments import operations as assignments
from accessportal.assignments import queries as assignment_queries
from accessportal.assignments.states import OUTSIDE_CLAIM, Assignment, AssignmentState, Comparison, Drift, Finding, Remedy
from accessportal.audit.states import Draft
from accessportal.catalog import queries as catalog
from accessportal.kernel.actors import Actor
from accessportal.kernel.brakes import MOST_SHARE, most_at_once
from accessportal.kernel.clock import Clock
from accessportal.kernel.errors import Conflict
from accessportal.kernel.moments import is_recent
from accessportal.kernel.pages import Page, every
from accessportal.kernel.proofs import Proof, Waiting
from accessportal.rules import queries as rules
from accessportal.rules.states import Effect

# A claim younger than this may belong to a request that is just being settled.
_SETTLING = timedelta(minutes=5)


def reconcile_assignments(
    *, remedies: Collection[Remedy] = (), most_share: float = MOST_SHARE, actor: Actor, clock: Clock
) -> ReconcileReport:
    """Compare, and mend what ``remedies`` say (none: report only).

    The portal's permission sets are those that an allow rule names. The brake: when more than ``most_share`` of the listed
    assignments would be removed (and more than a handful), nothing is removed and ``stopped`` says so.

    :raises Unavailable: when IAM Identity Center does not answer, or our store can't be read to the end.
    """
    comparison = assignments.compare(permission_set_arns=_permission_set_arns(), clock=clock)
    findings = [finding for finding in comparison.findings if not _is_in_hand(finding)]
    dead = _dead_claims(clock)
    doomed = [finding for finding in findings if _removes(finding, remedies)]
    going = len(doomed) + (len({claim.key for claim in dead}) if Remedy.REPAIR in remedies else 0)
    stopped = _brake(going, comparison, most_share)
    mended: list[Finding] = []
    waiting: list[str] = []
    for finding in findings:
        if stopped and finding in doomed:
            continue
        for remedy in remedies:
            outcome = _mend(finding, remedy, actor, clock)
            if isinstance(outcome, Waiting):
                waiting.append(outcome.reason)
            elif outcome is not None:
                mended.append(finding)
    if Remedy.REPAIR in remedies and not stopped:
        waiting += _release_dead(dead, actor, clock)
        waiting += [outcome.reason for outcome in assignments.go_on(actor=actor, clock=clock)]
    by_drift = {drift: tuple(finding for finding in findings if finding.drift is drift) for drift in Drift}
    return ReconcileReport(
        listed=comparison.listed,
        missing=by_drift[Drift.MISSING],
        unknown=by_drift[Drift.UNKNOWN],
        left_over=by_drift[Drift.LEFT_OVER],
        dead_claims=tuple(dead),
        mended=len(mended),
        waiting=tuple(waiting),
        unread=comparison.unread,
        stopped=stopped,
    )


def _is_in_hand(finding: Finding) -> bool:
    """Missing because its grant or its revocation is still under way: the request's own work brings it right."""
    return finding.drift is Drift.MISSING and any(request.work is not None for request in _holders(finding))


def _holders(finding: Finding) -> list[AccessRequest]:
    found = (store.get(claim) for claim in finding.claims if claim != OUTSIDE_CLAIM)
    return [request for request in found if request is not None and request.status is Status.ACTIVE]


def _mend(finding: Finding, remedy: Remedy, actor: Actor, clock: Clock) -> Proof | Waiting | None:
    holders = _holders(finding)
    if finding.drift is Drift.MISSING and not holders and OUTSIDE_CLAIM not in finding.claims:
        # Held by dead claims alone: they are released, and nobody is given anything for them.
        return None
    if finding.drift is not Drift.MISSING or remedy is not Remedy.REPAIR or not holders:
        return assignments.repair(finding=finding, remedy=remedy, actor=actor, clock=clock)
    # As work of a request it is tried again until it is proved; a bare repair that has to wait would be forgotten.
    try:
        request = carry_out(request_id=_grant_again(holders[0], actor, clock.now()).request_id, clock=clock)
    except (store.Overtaken, Conflict):
        return Waiting("overtaken", "The request changed while it was mended", clock.now(), is_error=False)
    if request.work is not None:
        return Waiting(
            "in_hand",
            request.work_error or "It can't be made again, and is being ended",
            request.work_due_at or clock.now(),
            is_error=False,
        )
    receipt = request.receipts[-1]
    return Proof(
        is_present=True,
        job_id=receipt.job_id,
        job_status=receipt.job_status,
        called_at=receipt.called_at,
        proved_at=receipt.proved_at,
    )


def _grant_again(request: AccessRequest, actor: Actor, now: datetime) -> AccessRequest:
    draft = Draft("request.retry_asked", request.subject_id, {"work": Work.GRANT.value}, scope=request.scope)
    return store.change(request, store.set_work(Work.GRANT, now), draft=draft, actor=actor, now=now)


def _permission_set_arns() -> list[str]:
    names = {
        name
        for rule in rules.current_rules()
        if rule.effect is Effect.ALLOW and rule.kind == AwsAccount.name
        for name in rule.permission_sets
    }
    found = (catalog.find_permission_set(name=name) for name in sorted(names))
    return [permission_set.arn for permission_set in found if permission_set is not None]


def _removes(finding: Finding, remedies: Collection[Remedy]) -> bool:
    return (finding.drift is Drift.LEFT_OVER and Remedy.REPAIR in remedies) or (
        finding.drift is Drift.UNKNOWN and Remedy.REMOVE_UNKNOWN in remedies
    )


def _brake(doomed: int, comparison: Comparison, most_share: float) -> str:
    if doomed <= most_at_once(comparison.listed, most_share):
        return ""
    return (
        f"{doomed} of {comparison.listed} assignments would be removed, more than the share of {most_share:.0%} that may go at once. "
        "Nothing was removed. Look at them, then run it again with a larger share."
    )


def _dead_claims(clock: Clock) -> list[DeadClaim]:
    """Claims whose request is not active any more: none should exist, so each is worth a look."""
    found = []
    for state in (AssignmentState.PRESENT, AssignmentState.CREATING, AssignmentState.DELETING):
        for assignment in every(partial(_by_state, state)):
            for claim in sorted(assignment.claims - {OUTSIDE_CLAIM}):
                request = store.get(claim)
                is_settling = is_recent(assignment.changed_at, now=clock.now(), within=_SETTLING)
                if not is_settling and (request is None or request.status is not Status.ACTIVE):
                    found.append(DeadClaim(key=assignment.key, request_id=claim))
    return found


def _by_state(state: AssignmentState, cursor: str | None) -> Page[Assignment]:
    return assignment_queries.list_by_state(state=state, cursor=cursor, limit=100)


def _release_dead(dead: Collection[DeadClaim], actor: Actor, clock: Clock) -> list[str]:
    outcomes = (
        assignments.release(key=claim.key, claim=claim.request_id, subject=claim.key.principal_id, actor=actor, clock=clock)
        for claim in dead
    )
    return [outcome.reason for outcome in outcomes if isinstance(outcome, Waiting)]
