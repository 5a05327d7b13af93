"""What the leases have cost, with the time of the figure, as far as AWS knows it; and what has followed from that."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, date, datetime, time, timedelta
from decimal import ROUND_HALF_UP, Decimal
from functools import partial

from accessportal.aws import cost_explorer
from accessportal.aws.cost_explorer import DailyCost
from accessportal.aws.errors import OutsideError
from accessportal.kernel.actors import Actor, system
from accessportal.kernel.clock import Clock, epoch_of, whole_second
from accessportal.kernel.errors import Conflict, PortalError
from accessportal.kernel.runs import Failure, Run
from accessportal.leases import policy, queries
from accessportal.leases.config import current
from accessportal.leases.operations.shared import changed_lease, until_written
from accessportal.leases.states import Lease, SpendReport, Verdict
from accessportal.leases.store import notes, pages, rows
from accessportal.store.transactions import Overtaken

SPEND = system("read_spend")
_DAY = timedelta(days=1)
# Cost Explorer knows the days of the last 14 months.
_OLDEST = timedelta(days=390)
_UNKNOWN = "AWS has told nothing for two days of what it costs. Look at Cost Explorer, and whether the portal may read it."


def is_spend_read() -> bool:
    """Whether Cost Explorer is asked at all."""
    return current().reads_costs


def read_spend(*, clock: Clock, actor: Actor = SPEND) -> SpendReport:
    """Read what every lease has cost since the day it began, and keep it with the time of the figure. A figure that is missing leaves the
    last one as it is; one that is missing for two days is told as a failure, and is never a zero.

    :raises Conflict: when that is not switched on.
    """
    policy.may_operate(actor).require()
    if not is_spend_read():
        raise Conflict("Cost Explorer is not asked: PORTAL_LEASES_COSTS is off.", code="costs_off")
    run = _Run(clock=clock)
    leases = list(pages.every_lease(past=run.pass_over))
    run.read_all(leases)
    unknown = run.unknown(leases)
    return SpendReport(leases=len(leases), read=tuple(run.read), unknown=tuple(unknown), failures=run.failed, stopped=run.stopped)


def note_verdict(*, lease_id: str, verdict: Verdict, actor: Actor, now: datetime) -> Lease:
    """Keep that a consequence of the cost has been drawn; to be called after that. Repeated, or after a more severe one, it changes
    nothing."""
    policy.may_operate(actor).require()

    def attempt() -> Lease:
        lease = queries.get_lease(lease_id=lease_id)
        if not policy.is_beyond(verdict, lease.reached):
            return lease
        after = replace(lease, reached=verdict)
        cost = {"spent": lease.spent, "unit": lease.spent_unit, "as_of": epoch_of(lease.spent_as_of)}
        return changed_lease(lease, after, "budget_reached", actor=actor, now=now, verdict=verdict.value, cost=cost)

    return until_written(attempt)


@dataclass(kw_only=True)
class _Run(Run):
    # It ended meanwhile, or something else was written: the next look decides.
    passes = (Overtaken,)
    clock: Clock
    read: list[str] = field(default_factory=list)
    stopped: str = ""

    def read_all(self, leases: Sequence[Lease]) -> None:
        if not leases:
            return
        now = self.clock.now()
        first = max(min(_began_on(lease) for lease in leases), (now - _OLDEST).date())
        costs: dict[str, list[DailyCost]] = {}
        try:
            asked = cost_explorer.read_daily_costs(
                {lease.account_id for lease in leases},
                first=first,
                end=(now + _DAY).date(),
                billing_view_arn=current().billing_view_arn,
            )
            for cost in asked:
                costs.setdefault(cost.account_id, []).append(cost)
        except OutsideError as error:
            # Half of them would make sums that are too low.
            self.stopped = f"Cost Explorer could not be read whole, so every figure stays as it is: {error}"
            return
        for lease in leases:
            days = [cost for cost in costs.get(lease.account_id, ()) if cost.day >= _began_on(lease)]
            if days:
                self.unit(lease.lease_id, partial(self._keep, lease, days, now))

    def _keep(self, lease: Lease, days: Sequence[DailyCost], now: datetime) -> None:
        as_of = whole_second(min(now, _end_of(max(cost.day for cost in days))))
        if lease.spent_as_of is not None and as_of < lease.spent_as_of:
            # What AWS knew already it does not tell now: that is no correction.
            return
        unit = _one_unit(days)
        spent = int((sum((cost.amount for cost in days), Decimal()) * 100).quantize(Decimal(1), ROUND_HALF_UP))
        after = replace(lease, spent=max(spent, 0), spent_unit=unit, spent_as_of=as_of)
        if after != lease:
            notes.note(lease, after)
        self.read.append(lease.lease_id)

    def unknown(self, leases: Sequence[Lease]) -> list[str]:
        """The leases of which nothing is known for too long, each a failure."""
        now = self.clock.now()
        present = rows.find_leases(lease.lease_id for lease in leases)
        found = sorted(lease_id for lease_id, lease in present.items() if policy.is_unknown(lease, now=now))
        self.failures += [Failure(lease_id, _UNKNOWN) for lease_id in found]
        return found


def _one_unit(days: Iterable[DailyCost]) -> str:
    units = {cost.unit for cost in days}
    if len(units) > 1:
        raise PortalError(f"Its costs are in {' and '.join(sorted(units))}, which can't be added.", code="currencies_differ")
    return units.pop()


def _began_on(lease: Lease) -> date:
    return policy.costs_since(lease).date()


def _end_of(day: date) -> datetime:
    return datetime.combine(day + _DAY, time(), UTC)
