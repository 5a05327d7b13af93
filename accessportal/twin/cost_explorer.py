"""Cost Explorer in the twin: the daily costs of accounts, as the settings say.

moto answers with whatever was queued, to any question. Here a day has a figure when it is over for ``cost_late_days``, and an account
without one is left out of the answer, as by AWS. A member account, also a delegated administrator, sees its own costs alone
(https://docs.aws.amazon.com/cost-management/latest/userguide/ce-access.html).
"""

from __future__ import annotations

import datetime as dt
import json
from collections.abc import Callable, Mapping
from typing import Any

from accessportal.kernel.clock import Clock
from accessportal.twin.callers import MANAGEMENT
from accessportal.twin.chances import Chances
from accessportal.twin.protocol import Answer, LostAnswerError, TwinError, json_answer
from accessportal.twin.settings import TwinSettings

TARGET_PREFIX = "AWSInsightsIndexService."
_PAGE = 100


class CostExplorerTwin(Chances):
    """Stands before moto's Cost Explorer, under the caller's lock. ``figures`` sets the cost of single days, ``None`` for one without a
    figure; ``calls`` counts what was asked, which AWS takes money for."""

    def __init__(self, clock: Clock, settings: TwinSettings) -> None:
        super().__init__(settings)
        self._clock = clock
        self.figures: dict[tuple[str, dt.date], str | None] = {}
        self.calls = 0

    def answer(self, operation: str, body: bytes, forward: Callable[[], Answer]) -> Answer:
        """Answer one call. Raises ``LostAnswerError`` when nobody is to get an answer."""
        if self.settings.cost_outage:
            raise LostAnswerError(operation)
        if self._happens(self.settings.cost_throttle):
            return TwinError("LimitExceededException", "Rate exceeded").answer()
        if operation != "GetCostAndUsage":
            return forward()
        self.calls += 1
        return json_answer(self._costs(json.loads(body)))

    def _costs(self, asked: dict[str, Any]) -> dict[str, Any]:
        day, end = (dt.date.fromisoformat(asked["TimePeriod"][name]) for name in ("Start", "End"))
        metric = asked["Metrics"][0]
        days = [day + dt.timedelta(days=number) for number in range((end - day).days)]
        accounts = sorted(asked["Filter"]["Dimensions"]["Values"]) if self.settings.caller == MANAGEMENT else []
        groups = [(one, _group(account, cost, metric)) for one in days for account in accounts if (cost := self._cost(account, one))]
        begin = int(asked.get("NextPageToken", 0))
        page = groups[begin : begin + _PAGE]
        results = [
            _of_day(one, [group for at, group in page if at == one]) for one in days if begin == 0 or any(at == one for at, _ in page)
        ]
        more = {"NextPageToken": str(begin + _PAGE)} if len(groups) > begin + _PAGE else {}
        return {"ResultsByTime": results, "DimensionValueAttributes": [], **more}

    def _cost(self, account_id: str, day: dt.date) -> str | None:
        if (account_id, day) in self.figures:
            return self.figures[account_id, day]
        is_late = (self._clock.now().date() - day).days < self.settings.cost_late_days
        return None if is_late else str(self.settings.costs_per_day.get(account_id, self.settings.cost_per_day))


def _group(account_id: str, cost: str, metric: str) -> dict[str, Any]:
    return {"Keys": [account_id], "Metrics": {metric: {"Amount": cost, "Unit": "USD"}}}


def _of_day(day: dt.date, groups: list[Mapping[str, Any]]) -> dict[str, Any]:
    period = {"Start": day.isoformat(), "End": (day + dt.timedelta(days=1)).isoformat()}
    return {"TimePeriod": period, "Total": {}, "Groups": groups, "Estimated": True}
