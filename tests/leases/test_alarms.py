"""What the jobs of the pool of accounts tell those who watch: nothing where nothing is set, and an alarm where somebody must look."""

from __future__ import annotations

import pytest

from accessportal.jobs import tasks
from accessportal.jobs.tasks import ItemsFailed
from accessportal.observe.metrics import PortalCollector
from tests.fixtures_twin import refuse, when
from tests.leases.conftest import Cleaning

pytestmark = pytest.mark.django_db


def figures(cleaning: Cleaning, part: str) -> dict[str, float]:
    """Whether the last run of a job was well, and what it counted, as metrics tell it."""
    found = {}
    for metric in PortalCollector(now=cleaning.clock.now()).collect():
        for sample in metric.samples:
            if sample.labels.get("part") == part and metric.name in {"accessportal_last_run_ok", "accessportal_last_run_items"}:
                found[sample.labels.get("kind", "ok")] = sample.value
    return found


def test_an_account_that_is_out_of_use_is_an_alarm(cleaning: Cleaning) -> None:
    bad, _ = cleaning.fill("bad", "good")
    cleaning.set(most_attempts=1)
    cleaning.twin.settings.cleaner_failures = {bad: 1}
    assert tasks.clean_accounts() == "begun 2, cleaned 0, waiting 0, refused 0, dropped 0, out_of_use 0, failed 0"
    cleaning.clock.advance(60)
    with pytest.raises(ItemsFailed, match="begun 0, cleaned 1, waiting 0, refused 0, dropped 0, out_of_use 1, failed 1"):
        tasks.clean_accounts()
    told = figures(cleaning, "clean_accounts")
    assert (told["ok"], told["out_of_use"], told["cleaned"], told["failed"]) == (0, 1, 1, 1)
    tasks.count_accounts()
    assert figures(cleaning, "count_accounts")["failed"] == 1


def test_a_cost_that_is_not_known_is_an_alarm(cleaning: Cleaning) -> None:
    (one,) = cleaning.fill("one")
    cleaning.accounts.clean(one)
    cleaning.set(reads_costs=True)
    cleaning.twin.settings.cost_late_days = 100
    cleaning.accounts.started()
    assert tasks.read_spend() == "leases 1, read 0, unknown 0, failed 0"
    cleaning.clock.advance(2 * 86_400 + 1)
    with pytest.raises(ItemsFailed):
        tasks.read_spend()
    told = figures(cleaning, "read_spend")
    assert (told["ok"], told["unknown"]) == (0, 1)


def test_a_pool_that_would_lose_too_many_is_an_alarm(cleaning: Cleaning) -> None:
    cleaning.make(*(f"lab-{number}" for number in range(6)))
    assert tasks.sync_pool() == "listed 7, known 0, new 7, gone 0, elsewhere 0, kept_out 0, failed 0"
    cleaning.set(units={cleaning.twin.organizational_units["/Security"]: "default"})
    with pytest.raises(ItemsFailed, match="would leave it"):
        tasks.sync_pool()
    assert figures(cleaning, "sync_pool")["ok"] == 0


def test_nothing_is_called_where_nothing_is_set(cleaning: Cleaning) -> None:
    cleaning.set(cleaner_arn="", units={}, reads_costs=False)
    names = ("DescribeStateMachine", "DescribeOrganization", "GetCostAndUsage")
    calls = [when(name, refuse("NotToBeCalled")) for name in names]
    with calls[0], calls[1], calls[2]:
        assert tasks.clean_accounts() == "no cleaner is set"
        assert tasks.sync_pool() == "no organizational unit is set"
        assert tasks.read_spend() == "PORTAL_LEASES_COSTS is off"
