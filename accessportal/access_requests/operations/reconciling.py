"""Holding every assignment of the portal's permission sets against the claims, and every claim against its request."""

from __future__ import annotations

from collections.abc import Collection
from datetime import timedelta

from accessportal.access_requests import store
from accessportal.access_requests.kinds.aws_account import AwsAccount
from accessportal.access_requests.states import DeadClaim, ReconcileReport, Status
from accessportal.assignments import operations as assignments
from accessportal.assignments import queries as assignment_queries
from accessportal.assignments.states import OUTSIDE_CLAIM, AssignmentState, Comparison, Drift, Finding, Remedy, Waiting
from accessportal.catalog import queries as catalog
from accessportal.kernel.actors import Actor
from accessportal.kernel.clock import Clock
from accessportal.kernel.pages import every
from accessportal.rules import queries as rules
from accessportal.rules.states import Effect

MOST_SHARE = 0.2
# A handful is never a landslide, whatever share it is.
_SMALL_NUMBER = 5
# A claim younger than this may belong to a request that is just being settled.
_SETTLING = timedelta(minutes=5)


def reconcile_assignments(
    *, remedies: Collection[Remedy] = (), most_share: float = MOST_SHARE, actor: Actor, clock: Clock
) -> ReconcileReport:
    """Compare, and mend what ``remedies`` say (none: report only).

    The portal's permission sets are those that an allow rule names. The brake: when more than ``most_share`` of the listed
    assignments would be removed (and more than a handful), nothing is removed and ``stopped`` says so.

    :raises Unavailable: when IAM Identity Center or our store can't be read to the end.
    """
    comparison = assignments.compare(permission_set_arns=_permission_set_arns(), clock=clock)
    dead = _dead_claims(clock)
    doomed = [finding for finding in comparison.findings if _removes(finding, remedies)]
    stopped = _brake(len(doomed), comparison, most_share)
    mended: list[Finding] = []
    waiting: list[str] = []
    for finding in comparison.findings:
        if stopped and finding in doomed:
            continue
        for remedy in remedies:
            outcome = assignments.repair(finding=finding, remedy=remedy, actor=actor, clock=clock)
            if isinstance(outcome, Waiting):
                waiting.append(outcome.reason)
            elif outcome is not None:
                mended.append(finding)
    if Remedy.REPAIR in remedies and not stopped:
        waiting += _release_dead(dead, actor, clock)
    by_drift = {drift: tuple(finding for finding in comparison.findings if finding.drift is drift) for drift in Drift}
    return ReconcileReport(
        listed=comparison.listed,
        missing=by_drift[Drift.MISSING],
        unknown=by_drift[Drift.UNKNOWN],
        left_over=by_drift[Drift.LEFT_OVER],
        dead_claims=tuple(dead),
        mended=len(mended),
        waiting=tuple(waiting),
        stopped=stopped,
    )


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
    if doomed <= _SMALL_NUMBER or doomed <= most_share * comparison.listed:
        return ""
    return (
        f"{doomed} of {comparison.listed} assignments would be removed, more than the share of {most_share:.0%} that may go at once. "
        "Nothing was removed. Look at them, then run it again with a larger share."
    )


def _dead_claims(clock: Clock) -> list[DeadClaim]:
    """Claims whose request is not active any more: none should exist, so each is worth a look."""
    found = []
    for assignment in every(lambda cursor: assignment_queries.list_by_state(state=AssignmentState.PRESENT, cursor=cursor, limit=100)):
        for claim in sorted(assignment.claims - {OUTSIDE_CLAIM}):
            request = store.get(claim)
            is_settling = clock.now() - assignment.changed_at < _SETTLING
            if not is_settling and (request is None or request.status is not Status.ACTIVE):
                found.append(DeadClaim(key=assignment.key, request_id=claim))
    return found


def _release_dead(dead: Collection[DeadClaim], actor: Actor, clock: Clock) -> list[str]:
    outcomes = (
        assignments.release(key=claim.key, claim=claim.request_id, subject=claim.key.principal_id, actor=actor, clock=clock)
        for claim in dead
    )
    return [outcome.reason for outcome in outcomes if isinstance(outcome, Waiting)]
