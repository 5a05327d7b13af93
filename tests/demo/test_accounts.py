"""The demo's accounts that are lent: eight, filled once, some of them lent, one out of use, and somebody in line."""

from __future__ import annotations

from collections import Counter
from datetime import timedelta

from accessportal.access_requests import operations as requests
from accessportal.access_requests import queries
from accessportal.catalog import operations as catalog
from accessportal.catalog import queries as catalog_queries
from accessportal.demo.accounts import POOL, SIZES, past_counts
from accessportal.demo.directory import COLLEAGUES, PEOPLE
from accessportal.kernel.actors import system
from accessportal.leases import operations
from accessportal.leases import queries as leases
from accessportal.leases.states import AccountState
from accessportal.twin import world
from accessportal.waiting import queries as waiting
from accessportal.waiting.states import ACCOUNTS
from accessportal.web.pool_forecast import pace
from tests.commands.conftest import run
from tests.conftest import START, FakeClock
from tests.demo.test_load_demo import SMALL, bare_twin  # noqa: F401


def test_the_counts_of_the_past_are_whole_and_of_a_week() -> None:
    counts = list(past_counts(START))

    assert {count.total for count in counts} == {len(SIZES)}
    assert all(number >= 0 for count in counts for number in count.counts.values())
    assert [count.counted_at for count in counts] == sorted(count.counted_at for count in counts)
    assert START - timedelta(days=7) <= counts[0].counted_at < START - timedelta(days=6)
    assert START - counts[-1].counted_at == timedelta(minutes=5)
    assert 0 < (pace([(one.counted_at, one.handed_out) for one in counts]) or 0) < 5


def test_accounts_that_came_after_the_last_look_are_known_at_once(bare_twin: None, clock: FakeClock) -> None:  # noqa: F811
    world.seed_world(accounts=40, permission_sets=4, people=(*PEOPLE, *COLLEAGUES))
    catalog.sync_catalog(now=clock.now(), clock=clock)
    # By runportal, which needs their machine before it loads the demo.
    lent = world.seed_lent(list(SIZES))

    run("load_demo", *SMALL)

    assert all(catalog_queries.find_account(account=account_id) for account_id in lent.accounts.values())


def test_a_pool_of_eight_with_somebody_in_line(bare_twin: None, clock: FakeClock) -> None:  # noqa: F811
    for _ in range(2):
        run("load_demo", *SMALL)
    requests.tick(clock=clock, lookahead_seconds=0, workers=1)
    # The demo's own count is of the same second.
    clock.advance(1)
    # Whoever asks while somebody waits stands in line, too, until the job looks whom what is free fits.
    operations.serve_line(actor=system("test"), clock=clock)
    operations.count_accounts(clock=clock)

    count = leases.last_count()
    assert count is not None
    states = {state: number for state, number in count.counts.items() if number}
    assert states == {AccountState.AVAILABLE: 2, AccountState.LEASED: 3, AccountState.INITIAL: 2, AccountState.FAILED: 1}
    assert list(count.pools) == [POOL]
    assert waiting.get_line(ACCOUNTS).waiting == 2
    (alices,) = [one for one in queries.list_open(subject_id="alice@example.com") if one.kind == "account_lease"]
    assert leases.get_lease(lease_id=alices.request_id).user == "alice@example.com"
    (broken,) = leases.list_accounts(pool=POOL, state=AccountState.FAILED).items
    assert "locked until March" in broken.reason
    assert Counter(account.size for account in leases.list_accounts(pool=POOL).items) <= Counter(SIZES.values())
    assert run("verify_audit").code == 0
    assert queries.list_by_subject(subject_id="tom@example.com", actor=system("test"), now=clock.now()).items
