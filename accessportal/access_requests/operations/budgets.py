"""What follows from the cost of leases: whoever holds one is warned, its access is frozen, or it ends, as its rule says."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import partial
from typing import Any

from accessportal.access_requests import store
from accessportal.access_requests.kinds.account_lease.terms import AtLimit
from accessportal.access_requests.operations.ending import end_without_subject
from accessportal.access_requests.operations.shared import ask_for_work, load, until_written
from accessportal.access_requests.states import AccessRequest, BudgetReport, Status, Work
from accessportal.audit import queries as audit
from accessportal.kernel.actors import system
from accessportal.kernel.clock import Clock, to_epoch
from accessportal.kernel.decisions import Decision, refuse
from accessportal.kernel.errors import Conflict, PortalError
from accessportal.kernel.pages import every
from accessportal.kernel.runs import Run
from accessportal.leases import operations as leases
from accessportal.leases import queries as lent
from accessportal.leases.policy import next_verdict
from accessportal.leases.states import Budget, Lease, NoSuchLease, Verdict

BUDGETS = system("mind_budgets")
_ACTION = "request.budget_reached"
_PAGE = 100


def mind_budgets(*, clock: Clock) -> BudgetReport:
    """Act on what each lease is known to have cost, by the budget of its newest request that has one. Each consequence comes once, is told
    on the requests, and is noted on the lease after it was drawn: whoever dies on the way is repeated by the next run."""
    run = _Minding(clock=clock)
    for lease in every(lambda cursor: lent.list_leases(cursor=cursor, limit=_PAGE), past=run.pass_over):
        if lease.spent:
            run.unit(lease.lease_id, partial(run.look_at, lease.lease_id))
    return BudgetReport(warned=tuple(run.warned), frozen=tuple(run.frozen), ended=tuple(run.ended), failures=run.failed)


@dataclass(kw_only=True)
class _Minding(Run):
    passes = (Conflict, NoSuchLease)
    clock: Clock
    warned: list[str] = field(default_factory=list)
    frozen: list[str] = field(default_factory=list)
    ended: list[str] = field(default_factory=list)

    def look_at(self, lease_id: str) -> None:
        lease = lent.get_lease(lease_id=lease_id)
        # The lease has the id of the request with which it began.
        known = store.get_many({lease_id, *lease.claims}).values()
        requests = [one for one in known if one.status is Status.ACTIVE]
        if not requests:
            return
        # Who extends by a rule without a budget has not got rid of that of the rule by which the account was lent.
        newest = max(known, key=lambda one: (bool(one.evidence.get("budget_usd")), one.requested_at))
        # One that was granted while the others were ended ends, too.
        is_held_still = lease.reached is Verdict.END and any(one.work is not Work.REVOKE for one in requests)
        reached = Verdict.FREEZE if is_held_still else lease.reached
        verdict = next_verdict(lease.spent, _budget_of(newest), reached=reached)
        if verdict is Verdict.NOTHING:
            return
        if lease.spent_unit != "USD":
            message = f"It costs {lease.spent_unit}, and its budget is in USD: nothing follows from it. Ask who pays the bill."
            raise PortalError(message, code="currency_unknown")
        now = self.clock.now()
        for request in requests:
            _tell(request, lease, verdict, self.clock)
        if verdict is Verdict.FREEZE:
            leases.freeze(lease_id=lease_id, reason=_reason(newest, lease), actor=BUDGETS, now=now)
        elif verdict is Verdict.END:
            for request in requests:
                self._end(request, refuse(_reason(newest, lease), code="over_budget"))
        leases.note_verdict(lease_id=lease_id, verdict=verdict, actor=BUDGETS, now=now)
        {Verdict.WARN: self.warned, Verdict.FREEZE: self.frozen, Verdict.END: self.ended}[verdict].append(lease_id)

    def _end(self, request: AccessRequest, why: Decision) -> None:
        now = self.clock.now()
        try:
            ask_for_work(end_without_subject(request_id=request.request_id, why=why, actor=BUDGETS, now=now), now)
        except Conflict:
            # It ends already.
            return


def _budget_of(request: AccessRequest) -> Budget:
    """In cents, as the rule said when this was asked for."""
    kept = request.evidence
    limit = int(kept.get("budget_usd") or 0) * 100
    if not limit:
        return Budget()
    at_limit = kept.get("budget_at_limit")
    return Budget(
        warn=limit * int(kept.get("budget_warn_percent") or 100) // 100,
        freeze=limit if at_limit == AtLimit.FREEZE else None,
        end=limit if at_limit == AtLimit.END else None,
    )


def _reason(request: AccessRequest, lease: Lease) -> str:
    limit = int(request.evidence["budget_usd"])
    return f"The account has cost {lease.spent / 100:.2f} USD, and the budget of rule {request.rule_name} is {limit} USD."


def _tell(seen: AccessRequest, lease: Lease, verdict: Verdict, clock: Clock) -> None:
    """Once on each request that holds the lease."""
    as_of = {"as_of": to_epoch(lease.spent_as_of)} if lease.spent_as_of else {}
    data: Mapping[str, Any] = {"verdict": verdict.value, "cost": {"spent": lease.spent, "unit": lease.spent_unit, **as_of}}

    def attempt() -> AccessRequest:
        request = load(seen.request_id)
        told = [event.data.get("verdict") for event in audit.chain_of(request.entity) if event.action == _ACTION]
        if request.status is not Status.ACTIVE or verdict.value in told:
            return request
        return store.change(request, request, _ACTION, dict(data), actor=BUDGETS, now=clock.now())

    until_written(attempt)
