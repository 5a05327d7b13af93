"""The daily costs of accounts, read from AWS Cost Explorer, which takes money for each call: many accounts are asked for at once."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from dataclasses import dataclass
from datetime import date
from decimal import Decimal, InvalidOperation
from typing import Any

from accessportal.aws.clients import cost_explorer_client
from accessportal.aws.errors import Refused, Throttled, sorted_call

_METRIC = "UnblendedCost"
_BY_ACCOUNT = "LINKED_ACCOUNT"
_ACCOUNTS_A_CALL = 100


@dataclass(frozen=True, slots=True)
class DailyCost:
    """What one account cost on one day (UTC). AWS may correct it for as long as the month's bill is open."""

    account_id: str
    day: date
    amount: Decimal
    unit: str


def read_daily_costs(account_ids: Collection[str], *, first: date, end: date, billing_view_arn: str = "") -> Iterator[DailyCost]:
    """Read the cost of each account and day from ``first`` to before ``end``, in no order. A day of which AWS has no figure is left out:
    that is never a zero. ``billing_view_arn``: what the management account shares with this one, which would see itself alone."""
    ordered = sorted(account_ids)
    for begin in range(0, len(ordered), _ACCOUNTS_A_CALL):
        asked: dict[str, Any] = {
            "TimePeriod": {"Start": first.isoformat(), "End": end.isoformat()},
            "Granularity": "DAILY",
            "Metrics": [_METRIC],
            "Filter": {"Dimensions": {"Key": _BY_ACCOUNT, "Values": ordered[begin : begin + _ACCOUNTS_A_CALL]}},
            "GroupBy": [{"Type": "DIMENSION", "Key": _BY_ACCOUNT}],
            **({"BillingViewArn": billing_view_arn} if billing_view_arn else {}),
        }
        for answer in _pages(asked):
            for result in answer["ResultsByTime"]:
                day = date.fromisoformat(result["TimePeriod"]["Start"])
                yield from (_cost(group, day) for group in result["Groups"])


def _pages(asked: dict[str, Any]) -> Iterator[dict[str, Any]]:
    after = ""
    while True:
        try:
            answer = sorted_call(cost_explorer_client().get_cost_and_usage, **asked, **({"NextPageToken": after} if after else {}))
        except Refused as error:
            if error.code == "LimitExceededException":
                # Elsewhere the same code means that there are too many of something.
                raise Throttled(error.code, error.message) from error
            raise
        yield answer
        after = answer.get("NextPageToken", "")
        if not after:
            return


def _cost(group: Any, day: date) -> DailyCost:
    (account_id,), told = group["Keys"], group["Metrics"][_METRIC]
    try:
        amount = Decimal(told["Amount"])
    except InvalidOperation as error:
        raise Refused("CostUnreadable", f"Of {day} and {account_id} the cost {told['Amount']!r} is no number") from error
    return DailyCost(account_id, day, amount, told["Unit"])
