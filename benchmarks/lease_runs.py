"""What the runs over the pool of accounts cost: the one that ends what is over, and the one that cleans. Access in IAM Identity Center is
replaced by proofs, and the cleaner is done at once: what is measured is the lending."""

from __future__ import annotations

import json
import uuid
from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from functools import partial
from types import SimpleNamespace
from typing import Any

from accessportal.access_requests import operations as requests
from accessportal.access_requests.kinds.account_lease import grant
from accessportal.aws.step_functions import Execution
from accessportal.kernel.actors import person, system
from accessportal.kernel.clock import SystemClock
from accessportal.kernel.proofs import Proof
from accessportal.leases import effects, operations
from accessportal.leases.states import Whereabouts
from accessportal.rules import operations as rules
from benchmarks.installation import RULES
from benchmarks.meter import Measured, measured

_UNIT = "ou-bench"
_SECONDS = 3_600
_RULE = """
  - name: accounts
    kind: account_lease
    effect: allow
    subjects: {{groups: [/engineering]}}
    targets: {{pools: [{pool}]}}
    permission_sets: [PowerUserAccess]
    duration: {{min: 1m, default: 1h, max: 1d}}
    approval: {{required: false}}
    most_per_person: 100
"""


@dataclass
class _Later:
    """The machine's clock, some time ahead."""

    ahead: timedelta = timedelta(0)

    def now(self) -> datetime:
        return SystemClock().now() + self.ahead

    def sleep(self, seconds: float) -> None:
        SystemClock().sleep(seconds)


@dataclass
class _Cleaner:
    """It has cleaned at once whatever it is given."""

    clock: _Later
    runs: dict[str, str] = field(default_factory=dict)

    def check(self) -> None:
        pass

    def start(self, run: str, given: str) -> None:
        self.runs.setdefault(run, given)

    def look(self, run: str) -> Execution | None:
        if run not in self.runs:
            return None
        now = self.clock.now()
        told = json.dumps({"account_id": run[:12], "found": 1, "removed": 1, "left": [], "not_looked_at": []})
        return Execution(run, "SUCCEEDED", self.runs[run], now, now, told)


def measure_runs(pool: str, together: int) -> Iterator[tuple[str, Measured]]:
    """``together`` leases are asked for, and got, by requests; then all are over."""
    clock = _Later()
    rules.apply_rules(text=RULES + _RULE.format(pool=pool), actor=system("bench"), now=clock.now())
    vars(grant)["assignments"] = SimpleNamespace(hold=partial(_proof, is_present=True), release=partial(_proof, is_present=False))
    vars(effects)["whereabouts"] = lambda _account_id: Whereabouts((_UNIT,), is_management=False)
    operations.configure(operations.LeaseSettings(undo_seconds=0, units={_UNIT: pool}, cleaner_arn="bench"))
    tick = partial(requests.tick, clock=clock, lookahead_seconds=0, workers=1)
    clean = partial(operations.clean_accounts, cleaner=_Cleaner(clock), clock=clock, workers=1)
    yield "expiry run, nothing over", measured([tick] * 3)
    yield "clean run, nothing due", measured([clean] * 3)
    for _ in range(together):
        _ask(pool, clock)
    tick()
    clock.ahead += timedelta(seconds=_SECONDS + 60)
    yield f"expiry run, {together} over", measured([tick])
    yield f"clean run, {together} begin", measured([clean])
    clock.ahead += timedelta(minutes=1)
    yield f"clean run, {together} end", measured([clean])


def _ask(pool: str, clock: _Later) -> None:
    requests.submit(
        kind="account_lease",
        subject_id=None,
        target={"pool": pool, "permission_set": "PowerUserAccess"},
        duration_seconds=_SECONDS,
        reason="Benchmark",
        ticket_id="",
        submission_id=str(uuid.uuid4()),
        actor=person("alice0@example.com"),
        now=clock.now(),
    )


def _proof(*, clock: _Later, is_present: bool, **_given: Any) -> Proof:
    now = clock.now()
    return Proof(is_present=is_present, job_id="bench", job_status="SUCCEEDED", called_at=now, proved_at=now)
