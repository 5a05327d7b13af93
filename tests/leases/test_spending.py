"""What a lease has cost: added up by day, late, missing and corrected; and what follows from it."""

from __future__ import annotations

from datetime import UTC, date, datetime, timedelta

import pytest

from accessportal.audit import queries as audit
from accessportal.kernel.errors import Conflict, NotAllowed
from accessportal.leases import operations, policy, queries
from accessportal.leases.states import Budget, Lease, LeaseState, SpendReport, Verdict
from tests.fixtures_twin import when
from tests.leases.conftest import CARL, JOB, MALLORY, Cleaning

BUDGET = Budget(warn=1_000, freeze=2_000, end=3_000)


@pytest.fixture
def spending(cleaning: Cleaning) -> Cleaning:
    """One account that is free; costs are read, and a day has its figure when it is over."""
    (one,) = cleaning.fill("one")
    cleaning.accounts.clean(one)
    cleaning.set(reads_costs=True)
    return cleaning


def read(cleaning: Cleaning) -> SpendReport:
    return operations.read_spend(clock=cleaning.clock)


def cost(cleaning: Cleaning, lease: Lease, days: dict[int, str | None]) -> None:
    """The cost by day of March."""
    cleaning.twin.front.costs.figures |= {(lease.account_id, date(2026, 3, day)): amount for day, amount in days.items()}


def to_day(cleaning: Cleaning, day: int) -> None:
    """To nine o'clock of a day of March."""
    cleaning.clock.advance((datetime(2026, 3, day, 9, tzinfo=UTC) - cleaning.clock.now()).total_seconds())


def now_of(lease: Lease) -> Lease:
    return queries.get_lease(lease_id=lease.lease_id)


def told(lease: Lease) -> tuple[int, str, datetime | None]:
    present = now_of(lease)
    return present.spent, present.spent_unit, present.spent_as_of


def test_the_days_of_the_lease_are_added_up_with_the_time_of_the_last_figure(spending: Cleaning) -> None:
    to_day(spending, 3)
    lease = spending.accounts.started()
    assert (read(spending).read, told(lease)) == ((), (0, "", None))
    to_day(spending, 4)
    cost(spending, lease, {1: "500", 2: "500", 3: "1.005", 4: "2.25", 5: "0.3349"})
    assert read(spending).read == (lease.lease_id,)
    # The figure of the day that is not over is as new as the look.
    assert told(lease) == (326, "USD", spending.clock.now())
    to_day(spending, 6)
    report = read(spending)
    assert (report.leases, report.read, report.unknown, report.is_ok) == (1, (lease.lease_id,), (), True)
    assert told(lease) == (359, "USD", datetime(2026, 3, 6, tzinfo=UTC))
    # No event, and no version: it is a note.
    assert now_of(lease).version == lease.version


def test_a_missing_figure_leaves_the_last_one_and_is_told_after_two_days(spending: Cleaning) -> None:
    lease = spending.accounts.started()
    cost(spending, lease, {2: "3", **dict.fromkeys(range(3, 9), None)})
    to_day(spending, 3)
    read(spending)
    known = (300, "USD", datetime(2026, 3, 3, tzinfo=UTC))
    assert told(lease) == known
    to_day(spending, 4)
    assert read(spending).is_ok
    to_day(spending, 5)
    report = read(spending)
    assert (report.unknown, report.is_ok, report.counts["unknown"], told(lease)) == ((lease.lease_id,), False, 1, known)
    assert report.failures[0].error.startswith("AWS has told nothing for two days of what it costs.")
    # The verdict goes by what is known: nothing is spent by what is not.
    assert policy.next_verdict(now_of(lease).spent, BUDGET, reached=Verdict.NOTHING) is Verdict.NOTHING
    cost(spending, lease, {3: "10", 4: "20"})
    assert (read(spending).unknown, told(lease)) == ((), (3300, "USD", datetime(2026, 3, 5, tzinfo=UTC)))


def test_a_lease_of_which_nothing_was_ever_told_is_no_lease_that_costs_nothing(spending: Cleaning) -> None:
    spending.twin.settings.cost_late_days = 100
    lease = spending.accounts.started()
    to_day(spending, 4)
    assert read(spending).is_ok
    spending.clock.advance(1)
    assert (read(spending).unknown, now_of(lease).spent_as_of) == ((lease.lease_id,), None)


def test_a_corrected_figure_counts_and_undoes_nothing(spending: Cleaning) -> None:
    lease = spending.accounts.started()
    cost(spending, lease, {2: "31"})
    to_day(spending, 3)
    read(spending)
    verdict = policy.next_verdict(now_of(lease).spent, BUDGET, reached=now_of(lease).reached)
    assert verdict is Verdict.END
    operations.note_verdict(lease_id=lease.lease_id, verdict=verdict, actor=JOB, now=spending.clock.now())
    cost(spending, lease, {2: "4"})
    read(spending)
    assert (told(lease)[0], now_of(lease).reached) == (400, Verdict.END)
    assert policy.next_verdict(now_of(lease).spent, BUDGET, reached=now_of(lease).reached) is Verdict.NOTHING
    (event,) = [one for one in audit.chain_of(lease.entity) if one.action == "lease.budget_reached"]
    assert event.data["verdict"] == "end"
    assert event.data["cost"] == {"spent": 3100, "unit": "USD", "as_of": int(datetime(2026, 3, 3, tzinfo=UTC).timestamp())}


def test_what_aws_knew_already_is_not_forgotten(spending: Cleaning) -> None:
    lease = spending.accounts.started()
    cost(spending, lease, {2: "3", 3: "4"})
    to_day(spending, 4)
    read(spending)
    assert told(lease) == (700, "USD", datetime(2026, 3, 4, tzinfo=UTC))
    cost(spending, lease, {3: None})
    read(spending)
    assert told(lease) == (700, "USD", datetime(2026, 3, 4, tzinfo=UTC))


def test_what_was_taken_back_has_cost_what_it_cost_before(spending: Cleaning) -> None:
    accounts = spending.accounts
    lease = accounts.started()
    cost(spending, lease, {2: "3", 3: "4", 4: "5"})
    to_day(spending, 4)
    for claim in ("again", "and again"):
        accounts.let_go(lease)
        lease = accounts.start(accounts.revive(lease, claim))
    to_day(spending, 5)
    read(spending)
    assert told(lease)[0] == 1200

    # Whoever has it next begins anew.
    accounts.let_go(lease)
    spending.clock.advance(600)
    accounts.clean(lease.account_id)
    others = accounts.started(CARL)
    cost(spending, others, {5: "6"})
    to_day(spending, 6)
    read(spending)
    assert told(others)[0] == 600


ROWS = [
    (999, Verdict.NOTHING, Verdict.NOTHING),
    (1_000, Verdict.NOTHING, Verdict.WARN),
    (1_999, Verdict.WARN, Verdict.NOTHING),
    (2_000, Verdict.WARN, Verdict.FREEZE),
    (2_500, Verdict.NOTHING, Verdict.FREEZE),
    (2_999, Verdict.FREEZE, Verdict.NOTHING),
    (3_000, Verdict.FREEZE, Verdict.END),
    (9_999, Verdict.NOTHING, Verdict.END),
    (9_999, Verdict.END, Verdict.NOTHING),
    (1_500, Verdict.FREEZE, Verdict.NOTHING),
    (0, Verdict.END, Verdict.NOTHING),
]


@pytest.mark.parametrize(("spent", "reached", "expected"), ROWS)
def test_what_follows_from_a_cost(spent: int, reached: Verdict, expected: Verdict) -> None:
    assert policy.next_verdict(spent, BUDGET, reached=reached) is expected


def test_a_budget_may_name_some_of_its_limits() -> None:
    assert policy.next_verdict(10**9, Budget(), reached=Verdict.NOTHING) is Verdict.NOTHING
    assert policy.next_verdict(10**9, Budget(warn=1), reached=Verdict.NOTHING) is Verdict.WARN
    assert policy.next_verdict(5, Budget(end=5), reached=Verdict.WARN) is Verdict.END


def test_a_consequence_is_noted_once_and_never_taken_back(spending: Cleaning) -> None:
    lease = spending.accounts.started()

    def note(verdict: Verdict) -> Lease:
        return operations.note_verdict(lease_id=lease.lease_id, verdict=verdict, actor=JOB, now=spending.clock.now())

    assert note(Verdict.FREEZE).reached is Verdict.FREEZE
    version = now_of(lease).version
    assert (note(Verdict.FREEZE).version, note(Verdict.WARN).version) == (version, version)
    assert note(Verdict.END).reached is Verdict.END


def test_half_an_answer_leaves_every_figure_as_it_is(spending: Cleaning) -> None:
    lease = spending.accounts.started()
    cost(spending, lease, {2: "3"})
    to_day(spending, 3)
    read(spending)
    spending.twin.settings.cost_throttle = 1
    report = read(spending)
    assert (report.is_ok, told(lease)[0]) == (False, 300)
    assert report.stopped.startswith("Cost Explorer could not be read whole, so every figure stays as it is: LimitExceededException")


def test_currencies_are_not_added_up(spending: Cleaning) -> None:
    lease = spending.accounts.started()

    def day(number: int, unit: str) -> dict[str, object]:
        group = {"Keys": [lease.account_id], "Metrics": {"UnblendedCost": {"Amount": "1", "Unit": unit}}}
        return {"TimePeriod": {"Start": f"2026-03-0{number}", "End": f"2026-03-0{number + 1}"}, "Groups": [group]}

    to_day(spending, 4)
    with when("GetCostAndUsage", lambda _asked: {"ResultsByTime": [day(2, "USD"), day(3, "EUR")]}):
        report = read(spending)
    assert [failure.error for failure in report.failures] == ["Its costs are in EUR and USD, which can't be added."]
    assert told(lease) == (0, "", None)


def test_all_leases_are_one_question_and_frozen_ones_are_in_it(spending: Cleaning) -> None:
    (two,) = spending.fill("two")
    spending.accounts.clean(two)
    lease, other = spending.accounts.started(), spending.accounts.started(CARL)
    operations.freeze(lease_id=other.lease_id, reason="budget", actor=JOB, now=spending.clock.now())
    operations.note_access_off(lease_id=other.lease_id, actor=JOB, now=spending.clock.now())
    assert now_of(other).state is LeaseState.FROZEN
    to_day(spending, 3)
    assert sorted(read(spending).read) == sorted([lease.lease_id, other.lease_id])
    assert spending.twin.front.costs.calls == 1


def test_nothing_is_asked_where_nobody_wants_it_or_nothing_is_lent(spending: Cleaning) -> None:
    assert (read(spending).leases, spending.twin.front.costs.calls) == (0, 0)
    spending.accounts.started()
    with pytest.raises(NotAllowed):
        operations.read_spend(clock=spending.clock, actor=MALLORY)
    spending.set(reads_costs=False)
    with pytest.raises(Conflict, match="PORTAL_LEASES_COSTS is off"):
        read(spending)
    assert spending.twin.front.costs.calls == 0
    assert timedelta(days=2) == policy._FIGURES_WITHIN
