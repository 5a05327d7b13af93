"""Many cleaners at once on a real engine, beside people who take and give back: each run begins once, and nobody's account is cleaned."""

from __future__ import annotations

import json
import threading
import time
import uuid
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from functools import partial

import pytest

from accessportal.aws.step_functions import Execution
from accessportal.kernel.runs import Failure
from accessportal.leases import effects, operations, queries
from accessportal.leases.config import LeaseSettings, current
from accessportal.leases.states import AccountState, Lease, Whereabouts
from tests.engine.stage import at_once, lost
from tests.leases.conftest import AccountsPool
from tests.leases.reading import check_whole

pytestmark = pytest.mark.usefixtures("engine")


class FastClock:
    """The machine's time from when it was made, a thousand times as fast."""

    def __init__(self) -> None:
        self._began = datetime.now(UTC)

    def now(self) -> datetime:
        return self._began + (datetime.now(UTC) - self._began) * 1_000

    def sleep(self, seconds: float) -> None:
        time.sleep(seconds / 1_000)


@dataclass
class MemoryCleaner:
    """Cleans at once; every fourth run fails, and every fifth first call gets no further. ``lent_while_cleaned``: must stay empty."""

    clock: FastClock
    runs: dict[str, Execution] = field(default_factory=dict)
    begun: list[str] = field(default_factory=list)
    lent_while_cleaned: list[str] = field(default_factory=list)
    _guard: threading.Lock = field(default_factory=threading.Lock)

    def check(self) -> None:
        """It always works."""

    def start(self, run: str, given: str) -> None:
        account_id = json.loads(given)["account_id"]
        if queries.get_account(account_id=account_id).state is AccountState.LEASED and run not in self.runs:
            self.lent_while_cleaned.append(run)
        with self._guard:
            if run in self.runs:
                return
            self.begun.append(run)
            number = len(self.begun)
            empty: list[str] = []
            told = {"account_id": account_id, "found": number, "removed": number, "left": empty, "not_looked_at": empty}
            status = "FAILED" if number % 4 == 0 else "SUCCEEDED"
            self.runs[run] = Execution(run, status, given, self.clock.now(), self.clock.now(), json.dumps(told), "no luck")

    def look(self, run: str) -> Execution | None:
        return self.runs.get(run)


def test_many_cleaners_and_people_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    clock = FastClock()
    pool, cleaner = AccountsPool(clock), MemoryCleaner(clock)
    monkeypatch.setattr(effects, "whereabouts", lambda _account_id: Whereabouts(("ou-abcd-11111111", "r-abcd"), is_management=False))
    former = current()
    operations.configure(replace(LeaseSettings(), undo_seconds=60, units={"ou-abcd-11111111": "default"}, most_attempts=20))
    ids = [f"{10**11 + number:012d}" for number in range(6)]
    pool.add(ids)
    until = time.monotonic() + 90
    failures: list[Failure] = []
    fences: list[tuple[str, int]] = []

    def is_over() -> bool:
        return len(fences) >= 12 or time.monotonic() > until

    def clean() -> None:
        while not is_over():
            report = operations.clean_accounts(cleaner=cleaner, clock=clock, workers=1)
            failures.extend(one for one in report.failures if "no luck" not in one.error)

    def live(user: str) -> None:
        claim = str(uuid.uuid4())
        while not is_over():
            found = pool.take(user, claim=claim, most_held=1)
            if isinstance(found, Lease):
                fences.append((found.account_id, found.fence))
                pool.start(found)
                pool.let_go(found)
                claim = str(uuid.uuid4())

    try:
        people: list[Callable[[], None]] = [partial(live, f"user-{number}@example.com") for number in range(4)]
        answers = at_once([clean, clean, clean, clean, *people])
    finally:
        operations.configure(former)
    assert lost(answers) == []
    assert (cleaner.lent_while_cleaned, failures) == ([], [])
    assert max(Counter(fences).values()) == 1
    assert max(Counter(cleaner.begun).values()) == 1
    assert len(fences) >= 12
    # Each hand-over was cleaned by a run of its own, and begun in order, without a gap.
    for one in ids:
        for fence in {name.split("-")[1] for name in cleaner.begun if name.startswith(one)}:
            numbers = [int(name.split("-")[2]) for name in cleaner.begun if name.startswith(f"{one}-{fence}-")]
            assert numbers == list(range(1, len(numbers) + 1))
    check_whole()
