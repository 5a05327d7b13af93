"""Daily costs: by account and day, late, corrected, missing and over many pages; translated by our module."""

from __future__ import annotations

from datetime import date, timedelta
from decimal import Decimal

import pytest

from accessportal.aws.cost_explorer import DailyCost, read_daily_costs
from accessportal.aws.errors import OutsideError, Refused, Throttled
from tests.fixtures_twin import Twin, when

TODAY = date(2026, 3, 2)
ONE, OTHER = "111122223333", "444455556666"


def read(*accounts: str, days: int = 3) -> dict[tuple[str, date], Decimal]:
    costs = read_daily_costs(accounts, first=TODAY - timedelta(days=days - 1), end=TODAY + timedelta(days=1))
    return {(cost.account_id, cost.day): cost.amount for cost in costs}


def test_figures_are_by_account_and_day_and_what_is_missing_is_no_zero(twin: Twin) -> None:
    twin.settings.change({"costs_per_day": {ONE: 2.5, OTHER: 0}})
    yesterday, before = TODAY - timedelta(days=1), TODAY - timedelta(days=2)
    twin.front.costs.figures = {(ONE, before): "7.125", (OTHER, before): None}
    assert read(ONE, OTHER) == {(ONE, before): Decimal("7.125"), (ONE, yesterday): Decimal("2.5"), (OTHER, yesterday): Decimal(0)}
    twin.settings.change({"cost_late_days": 3})
    assert read(ONE, days=2) == {}


def test_a_hundred_accounts_are_one_question_and_every_page_is_read(twin: Twin) -> None:
    accounts = [f"{number:012}" for number in range(150)]
    found = read(*accounts, days=4)
    assert len(found) == 150 * 3
    # 300 rows, then 150, a hundred to a page; none but full pages and the last.
    assert twin.front.costs.calls == 3 + 2


def test_a_member_account_sees_nothing_of_others(twin: Twin) -> None:
    twin.settings.change({"caller": "delegated"})
    assert read(ONE) == {}


def test_trouble_is_translated(twin: Twin) -> None:
    twin.settings.change({"cost_throttle": 1})
    with pytest.raises(Throttled):
        read(ONE)
    twin.settings.change({"cost_throttle": 0})
    group = {"Keys": [ONE], "Metrics": {"UnblendedCost": {"Amount": "much", "Unit": "USD"}}}
    odd = {"ResultsByTime": [{"TimePeriod": {"Start": "2026-03-01", "End": "2026-03-02"}, "Groups": [group]}]}
    with when("GetCostAndUsage", lambda _asked: odd), pytest.raises(Refused, match="the cost 'much' is no number"):
        read(ONE)
    twin.settings.change({"cost_outage": True})
    with pytest.raises(OutsideError):
        read(ONE)


def test_a_shared_view_is_named_in_the_question(twin: Twin) -> None:
    asked: list[str | None] = []
    view = "arn:aws:billing::123456789012:billingview/custom-1"
    with when("GetCostAndUsage", lambda given: asked.append(given.get("BillingViewArn"))):
        list(read_daily_costs([ONE], first=TODAY, end=TODAY + timedelta(days=1), billing_view_arn=view))
        assert list(read_daily_costs([ONE], first=TODAY - timedelta(days=1), end=TODAY)) == [
            DailyCost(ONE, TODAY - timedelta(days=1), Decimal("1.25"), "USD")
        ]
    assert asked == [view, None]
