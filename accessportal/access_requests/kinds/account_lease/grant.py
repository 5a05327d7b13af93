"""Granting: an account is taken, the access to it is claimed and proved, and only then its time runs. Revoking is the way back."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from dataclasses import replace
from datetime import datetime, timedelta

from accessportal.access_requests import store
from accessportal.access_requests.config import current
from accessportal.access_requests.kind import Resolved
from accessportal.access_requests.kinds.account_lease.extending import require_extendable
from accessportal.access_requests.kinds.account_lease.line import places_in_line
from accessportal.access_requests.kinds.account_lease.target import LeaseTarget, read_tags
from accessportal.access_requests.kinds.account_lease.terms import LeaseTerms, terms_of
from accessportal.access_requests.kinds.lending import LentGrant, chain_of, require_fewer
from accessportal.access_requests.states import AccessRequest, PlaceInLine, Subject
from accessportal.assignments import operations as assignments
from accessportal.assignments import queries as held
from accessportal.assignments.states import AssignmentKey
from accessportal.catalog import queries as catalog
from accessportal.catalog.states import PrincipalType
from accessportal.directory.queries import Book
from accessportal.kernel.actors import Actor
from accessportal.kernel.clock import Clock
from accessportal.kernel.decisions import Decision, allow, refuse
from accessportal.kernel.errors import Conflict, NotFound
from accessportal.kernel.proofs import Proof, Waiting
from accessportal.leases import operations as leases
from accessportal.leases import queries as lent
from accessportal.leases.policy import is_revivable
from accessportal.leases.states import Lease, LeaseState, NoSuchAccount
from accessportal.rules.states import Rule
from accessportal.store.transactions import Guard
from accessportal.waiting import operations as waiting
from accessportal.waiting.states import ACCOUNTS

_LATER = timedelta(minutes=5)
# A sync of the catalog that ended so long after the account was lent has looked for it.
_SURELY_SEEN = timedelta(hours=1)


class LeaseGrant(LentGrant):
    line = ACCOUNTS

    def places_in_line(self, requests: Sequence[AccessRequest], *, now: datetime) -> dict[str, PlaceInLine]:
        return places_in_line(requests, now=now)

    def require_free(
        self, *, resolved: Resolved, subject: Subject, rule: Rule, open_now: Sequence[AccessRequest], book: Book, now: datetime
    ) -> None:
        mine = [one for one in open_now if one.kind == LeaseTerms.kind]
        if resolved.stored["continues"]:
            require_extendable(resolved, [one for one in mine if LeaseTarget().gives(one, resolved.stored)], rule, now)
            return
        require_fewer(mine, than=terms_of(rule).most_per_person, one="account", many="accounts", rule=rule)

    def grant(self, *, request: AccessRequest, guards: Sequence[Guard], actor: Actor, clock: Clock) -> Proof | Waiting:
        try:
            lease = _lease_for(request, guards, actor, clock)
            if isinstance(lease, Waiting):
                return lease
            if LeaseState.FROZEN in (lease.state, lease.wanted):
                words = "The account is frozen. Its access comes back when an operator unfreezes it, unless its time is over before."
                return Waiting("frozen", words, clock.now() + _LATER, is_error=False)
            outcome = assignments.hold(
                key=key_of(request, lease.account_id),
                claim=request.request_id,
                guards=[*guards, lent.still(lease)],
                subject=request.subject_id,
                actor=actor,
                clock=clock,
            )
            if isinstance(outcome, Waiting):
                return outcome
            lease = leases.start(
                lease_id=lease.lease_id, claim=request.request_id, proved_at=outcome.proved_at, actor=actor, now=clock.now()
            )
        except NotFound:
            words = "The account was given back, or taken away, before this was done. Another can be asked for."
            return Waiting("lease_over", words, clock.now(), is_error=True, is_final=True)
        return replace(outcome, ends_at=lease.claims[request.request_id], account_id=lease.account_id)

    def revoke(self, *, request: AccessRequest, actor: Actor, clock: Clock) -> Proof | Waiting:
        claim = request.request_id
        # Out of the line first: after that nothing is handed over to it any more.
        waiting.leave(line=ACCOUNTS, claim=claim, actor=actor, now=clock.now())
        lent_to = lent.lent_to(lease_id=chain_of(request))
        if lent_to is None:
            # Never had one.
            return Proof(is_present=False, job_id="", job_status="NOT_HELD", called_at=None, proved_at=clock.now())
        key = key_of(request, lent_to.account_id)
        # Whatever the lease says of the claim: somebody may have changed or deleted it while the access is there.
        outcome = assignments.release(key=key, claim=claim, subject=request.subject_id, actor=actor, clock=clock)
        if isinstance(outcome, Proof):
            let_go(key, chain_of(request), claim, outcome, actor, clock)
        return outcome

    def may_take_back(self, request: AccessRequest, *, now: datetime) -> Decision:
        try:
            account = lent.get_account(account_id=request.account_id)
        except NotFound as error:
            return refuse(error.message, code=error.code)
        window = current().undo_seconds
        if is_revivable(account, lease_id=chain_of(request), user=request.subject_id, undo_seconds=window, now=now):
            return allow("nobody has begun to clean it")
        return refuse("This can't be taken back any more: it is being cleaned. Ask for another one.", code="undo_over")

    def ends_for_good(self, request: AccessRequest) -> bool:
        lease = lent.find_lease(lease_id=chain_of(request))
        return lease is not None and LeaseState.FROZEN in (lease.state, lease.wanted)

    def is_there(self, request: AccessRequest, *, now: datetime) -> Decision:
        lease = lent.find_lease(lease_id=chain_of(request))
        if lease is None or request.request_id not in lease.claims:
            return refuse("The account was taken away: it left the pool, or is out of use.", code="taken_away")
        account = catalog.find_account(account=lease.account_id)
        synced_at = catalog.freshness().synced_at
        if synced_at is not None and synced_at - lease.taken_at > _SURELY_SEEN and (account is None or account.status != "ACTIVE"):
            return refuse("The account is gone from the organization, or closed.", code="account_gone")
        return allow("it is lent for this request")


def _lease_for(request: AccessRequest, guards: Sequence[Guard], actor: Actor, clock: Clock) -> Lease | Waiting:
    """The lease with the request among its claims: taken, taken back or prolonged."""
    claim, target, now = request.request_id, request.target, clock.now()
    if target["continues"]:
        lease_id = str(target["continues"])
        return leases.prolong(lease_id=lease_id, claim=claim, ends_at=request.expires_at, guards=guards, actor=actor, now=now)
    asked = leases.Asked(
        claim=claim,
        lease_id=claim,
        user=request.subject_id,
        pool=str(target["pool"]),
        size=str(target["size"]),
        tags=read_tags(str(target["tags"])),
        permission_set=request.permission_set,
        duration_seconds=request.duration_seconds,
        most_held=int(request.evidence.get("most_per_person") or 1),
    )
    if not request.takes_back:
        return leases.take(asked, lapses_at=request.expires_at, guards=guards, actor=actor, clock=clock)
    given_back = store.get(request.takes_back)
    assert given_back is not None, "it is kept for longer than it can be taken back"
    try:
        ended = chain_of(given_back)
        return leases.revive(asked, account_id=request.account_id, ended_lease_id=ended, guards=guards, actor=actor, now=now)
    except Conflict as error:
        if error.code == "guard_failed":
            raise
        return Waiting(error.code, error.message, now, is_error=True, is_final=True)


def let_go(key: AssignmentKey, lease_id: str, claim: str, gone: Proof, actor: Actor, clock: Clock) -> None:
    """The claim's access was proved ``gone``. While its person keeps the same by another rule, the account goes to nobody else."""
    lent_to = lent.lent_to(lease_id=lease_id) if gone.kept_by else None
    if lent_to is not None and lent_to.claims == {claim}:
        # Read now: those that ended together with it may have gone since.
        assignment = held.find(key=key)
        if assignment is not None and assignment.claims:
            reason = f"Access to it is held beside the lease, by {min(assignment.claims)}. End that, and then restore the account."
            # Where somebody has deleted it from the pool it goes to nobody either.
            with suppress(NoSuchAccount):
                leases.quarantine(account_id=key.account_id, reason=reason, actor=actor, now=clock.now())
    leases.let_go(lease_id=lease_id, claim=claim, actor=actor, now=clock.now())


def key_of(request: AccessRequest, account_id: str) -> AssignmentKey:
    """The access of the request's person to the account that they were lent."""
    return AssignmentKey(
        principal_type=PrincipalType(request.target["principal_type"]),
        principal_id=request.target["principal_id"],
        account_id=account_id,
        permission_set_arn=request.target["permission_set_arn"],
    )
