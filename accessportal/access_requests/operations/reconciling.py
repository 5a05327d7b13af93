"""Holding every assignment of the portal's permission sets against the claims, and every claim against its request."""

from __future__ import annotations

from collections.abc import Callable, Collection
from dataclasses import replace
from datetime import datetime, timedelta
from itertools import islice

from accessportal.access_requests import store
from accessportal.access_requests.kinds.account_lease.grant import key_of, let_go
from accessportal.access_requests.kinds.account_lease.terms import LeaseTerms
from accessportal.access_requests.kinds.aws_account.terms import AccountTerms
from accessportal.access_requests.operations.working import carry_out
from accessportal.access_requests.states import AccessRequest, DeadClaim, ReconcileReport, Status, Work
from accessportal.assignments import operations as assignments
from accessportal.assignments import queries as assignment_queries
from accessportal.assignments.states import (
    OUTSIDE_CLAIM,
    AssignmentKey,
    AssignmentState,
    Comparison,
    Drift,
    Finding,
    Remedy,
    finding_id_for,
)
from accessportal.catalog import queries as catalog
from accessportal.catalog.states import PrincipalType
from accessportal.kernel.actors import Actor
from accessportal.kernel.brakes import MOST_SHARE, brake
from accessportal.kernel.clock import Clock
from accessportal.kernel.errors import Conflict, InvalidRequest, Unavailable
from accessportal.kernel.moments import is_recent
from accessportal.kernel.pages import Unreadable, every
from accessportal.kernel.proofs import Proof, Waiting
from accessportal.leases import queries as leases
from accessportal.leases.states import Lease
from accessportal.rules import queries as rules
from accessportal.rules.states import Effect
from accessportal.store.restores import held_back, held_restore
from accessportal.store.transactions import Overtaken

# A claim younger than this may belong to a request that is just being settled.
_SETTLING = timedelta(minutes=5)
_RECORDS_AT_ONCE = 100
# While another worker compares.
_LOOK_AGAIN_SECONDS = 5.0


def compare_assignments(*, until: datetime | None, tell: Callable[[Comparison], object] = lambda _: None, clock: Clock) -> Comparison:
    """Go on with the comparison of everything in Identity Center under the portal's permission sets (those that an allow rule names) with
    our records, to its end or until ``until``. Conflict ``comparison_busy`` while another worker does. It changes nothing."""
    return assignments.compare(granted=_permission_set_arns(), until=until, tell=tell, clock=clock)


def reconcile_assignments(
    *,
    remedies: Collection[Remedy] = (),
    chosen: Collection[str] = (),
    most_share: float = MOST_SHARE,
    tell: Callable[[Comparison], object] = lambda _: None,
    actor: Actor,
    clock: Clock,
) -> ReconcileReport:
    """Compare to the end, and mend what ``remedies`` say (none: report only). With ids of findings in ``chosen`` nothing is compared: those
    of the last comparison alone are mended, each looked at once more. When more than ``most_share`` would be removed, nothing is, and
    ``stopped`` says so."""
    if not chosen:
        _compare_to_the_end(tell, clock)
    report = last_report(clock=clock)
    if report is None:
        raise InvalidRequest("Nothing has been compared yet. Run it without a finding first.", code="not_compared", field="finding")
    return _mended(report, remedies, frozenset(chosen), most_share, actor, clock) if remedies else report


def last_report(*, clock: Clock) -> ReconcileReport | None:
    """What the last finished comparison found, and the claims of requests that are over now; ``None`` before the first."""
    comparison = assignment_queries.comparisons().last
    if comparison is None:
        return None
    found = assignment_queries.found_by(comparison=comparison)
    unreadable: list[Unreadable] = []
    dead = [*_dead_claims(clock, unreadable.append), *_dead_leases(clock, unreadable.append)]
    findings = [finding for finding in found.findings if not _is_in_hand(finding, unreadable.append)]
    by_drift = {drift: tuple(finding for finding in findings if finding.drift is drift) for drift in Drift}
    return ReconcileReport(
        comparison=comparison,
        listed=found.listed,
        missing=by_drift[Drift.MISSING],
        unknown=by_drift[Drift.UNKNOWN],
        left_over=by_drift[Drift.LEFT_OVER],
        dead_claims=tuple(dead),
        not_ours=by_drift[Drift.NOT_OURS],
        mended=0,
        waiting=(),
        unread=found.unread,
        unreadable=tuple(sorted({str(one) for one in unreadable})),
    )


def _compare_to_the_end(tell: Callable[[Comparison], object], clock: Clock) -> None:
    """Here, or by the worker that is at it already."""
    began = clock.now()
    while True:
        try:
            compare_assignments(until=None, tell=tell, clock=clock)
        except Conflict:
            clock.sleep(_LOOK_AGAIN_SECONDS)
            now = assignment_queries.comparisons()
            if now.open is not None:
                tell(now.open)
            elif now.last is not None and now.last.finished_at is not None and now.last.finished_at >= began:
                return
        else:
            return


def _mended(
    report: ReconcileReport, remedies: Collection[Remedy], chosen: frozenset[str], most_share: float, actor: Actor, clock: Clock
) -> ReconcileReport:
    # What is not ours is touched only when somebody names it.
    findings = [*report.missing, *report.unknown, *report.left_over, *(report.not_ours if chosen else ())]
    unknown = chosen - {one.finding_id for one in findings} - {one.finding_id for one in report.dead_claims}
    if unknown:
        text = f"The last comparison found no {', '.join(sorted(unknown))}. Run it again without a finding, and take an id from there."
        raise InvalidRequest(text, code="finding_unknown", field="finding")
    findings = [one for one in findings if not chosen or one.finding_id in chosen]
    dead = [one for one in report.dead_claims if not chosen or one.finding_id in chosen] if Remedy.REPAIR in remedies else []
    doomed = [finding for finding in findings if _removes(finding, remedies)]
    going = len(doomed) + len({claim.key for claim in dead})
    remedy = "Nothing was removed. Look at them"
    stopped = brake(going, report.listed, most_share, would="assignments would be removed", remedy=remedy)
    outcomes = [
        outcome
        for finding in findings
        if not (stopped and finding in doomed)
        for remedy in remedies
        if (outcome := _mend(finding, remedy, actor, clock)) is not None
    ]
    waiting = [outcome.reason for outcome in outcomes if isinstance(outcome, Waiting)]
    if not stopped:
        waiting += _release_dead(dead, report.dead_claims, actor, clock)
        if Remedy.REPAIR in remedies and not chosen:
            waiting += [outcome.reason for outcome in assignments.go_on(actor=actor, clock=clock)]
    return replace(report, mended=sum(isinstance(outcome, Proof) for outcome in outcomes), waiting=tuple(waiting), stopped=stopped)


def _is_in_hand(finding: Finding, past: Callable[[Unreadable], object]) -> bool:
    """Missing because its grant or its revocation is still under way: the request's own work brings it right."""
    return finding.drift is Drift.MISSING and any(request.work is not None for request in _holders(finding, past))


def _holders(finding: Finding, past: Callable[[Unreadable], object] | None = None) -> list[AccessRequest]:
    found = store.get_many((claim for claim in finding.claims if claim != OUTSIDE_CLAIM), past=past)
    return [request for _, request in sorted(found.items()) if request.status is Status.ACTIVE]


def _mend(finding: Finding, remedy: Remedy, actor: Actor, clock: Clock) -> Proof | Waiting | None:
    """``None`` when there is nothing to mend any more, or this is not the remedy."""
    try:
        if not assignments.is_still_so(finding=finding, clock=clock):
            return None
        holders = _holders(finding)
    except Unavailable as error:
        return Waiting("not_looked_at", error.message, clock.now(), is_error=True)
    if finding.drift is Drift.MISSING and not holders and OUTSIDE_CLAIM not in finding.claims:
        # Held by dead claims alone: they are released, and nobody is given anything for them.
        return None
    if finding.drift is not Drift.MISSING or remedy is not Remedy.REPAIR or not holders:
        return assignments.repair(finding=finding, remedy=remedy, actor=actor, clock=clock)
    if held_restore() is not None:
        return held_back(clock.now())
    # As work of a request it is tried again until it is proved; a bare repair that has to wait would be forgotten.
    try:
        request = carry_out(request_id=_grant_again(holders[0], actor, clock.now()).request_id, clock=clock)
    except (Overtaken, Conflict):
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
    again = request.to_do(Work.GRANT, due_at=now)
    return store.change(request, again, "request.retry_asked", {"work": Work.GRANT.value}, actor=actor, now=now)


def _permission_set_arns() -> list[str]:
    names = {
        name
        for rule in rules.current_rules()
        if rule.effect is Effect.ALLOW and isinstance(rule.terms, AccountTerms | LeaseTerms)
        for name in rule.terms.permission_sets
    }
    found = (catalog.find_permission_set(name=name) for name in sorted(names))
    return [permission_set.arn for permission_set in found if permission_set is not None]


def _removes(finding: Finding, remedies: Collection[Remedy]) -> bool:
    return (finding.drift is Drift.LEFT_OVER and Remedy.REPAIR in remedies) or (
        finding.drift in (Drift.UNKNOWN, Drift.NOT_OURS) and Remedy.REMOVE_UNKNOWN in remedies
    )


def _dead_claims(clock: Clock, past: Callable[[Unreadable], object]) -> list[DeadClaim]:
    """Claims whose request is not active any more: none should exist, so each is worth a look. What can't be read is no such claim."""
    found = []
    for state in (AssignmentState.PRESENT, AssignmentState.CREATING, AssignmentState.DELETING):
        records = assignment_queries.every_in(state=state, past=past)
        while some := list(islice(records, _RECORDS_AT_ONCE)):
            claims = [
                (one.key, claim)
                for one in some
                if not is_recent(one.changed_at, now=clock.now(), within=_SETTLING)
                for claim in sorted(one.claims - {OUTSIDE_CLAIM})
            ]
            dead = _without_request({claim for _, claim in claims}, past)
            found += [DeadClaim(key, claim, finding_id_for("dead_claim", key, claim)) for key, claim in claims if claim in dead]
    return found


def _dead_leases(clock: Clock, past: Callable[[Unreadable], object]) -> list[DeadClaim]:
    """The same on leases, where a claim outlives its request only when the tables were restored to different moments."""
    found = []
    records = every(lambda cursor: leases.list_leases(cursor=cursor, limit=_RECORDS_AT_ONCE), past=past)
    while some := list(islice(records, _RECORDS_AT_ONCE)):
        settled = [one for one in some if not is_recent(one.taken_at, now=clock.now(), within=_SETTLING)]
        dead = _without_request({claim for one in settled for claim in one.claims}, past)
        for lease, claim in [(one, claim) for one in settled for claim in sorted(one.claims) if claim in dead]:
            request = dead[claim]
            key = _key_of_lease(lease) if request is None else key_of(request, lease.account_id)
            found.append(DeadClaim(key, claim, finding_id_for("dead_lease", key, claim), lease.lease_id))
    return found


def _without_request(claims: Collection[str], past: Callable[[Unreadable], object]) -> dict[str, AccessRequest | None]:
    """Those claims whose request is not active, with the request if there is one. What can't be read is none of them."""
    unreadable: list[Unreadable] = []
    requests = store.get_many(claims, past=unreadable.append)
    for one in unreadable:
        past(one)
    missing = dict.fromkeys(set(claims) - {one.key for one in unreadable})
    return {claim: request for claim, request in (missing | requests).items() if request is None or request.status is not Status.ACTIVE}


def _key_of_lease(lease: Lease) -> AssignmentKey:
    """As far as it is known without the request."""
    person = catalog.find_user_principal(email=lease.user)
    permission_set = catalog.find_permission_set(name=lease.permission_set)
    principal_id, arn = person.principal_id if person else lease.user, permission_set.arn if permission_set else lease.permission_set
    return AssignmentKey(PrincipalType.USER, principal_id, lease.account_id, arn)


def _release_dead(dead: Collection[DeadClaim], found: Collection[DeadClaim], actor: Actor, clock: Clock) -> list[str]:
    """A lease goes last: only when all access that was ``found`` for the same request is proved gone."""
    outcomes = {
        (one.key, one.request_id): assignments.release(
            key=one.key, claim=one.request_id, subject=one.key.principal_id, actor=actor, clock=clock
        )
        for one in dead
    }
    gone = {access: outcome for access, outcome in outcomes.items() if isinstance(outcome, Proof)}
    held = {one.request_id for one in found if not one.lease_id and (one.key, one.request_id) not in gone}
    waiting = [outcome.reason for outcome in outcomes.values() if isinstance(outcome, Waiting)]
    for one in dead:
        proof = gone.get((one.key, one.request_id))
        if one.lease_id and one.request_id in held:
            waiting.append(f"Account {one.key.account_id} stays lent: other access by the request {one.request_id} is not proved gone.")
        elif one.lease_id and proof is not None:
            let_go(one.key, one.lease_id, one.request_id, proof, actor, clock)
    return waiting
