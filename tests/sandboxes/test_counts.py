"""Counts over time: at most one in five minutes, kept for eight days."""

from __future__ import annotations

from datetime import timedelta

import pytest

from accessportal.kernel.errors import Unavailable
from accessportal.sandboxes import operations, queries
from accessportal.sandboxes.states import Stats, Status
from tests.sandboxes.conftest import Pool, Upstream

_DAY = timedelta(days=1)


def align(pool: Pool) -> None:
    """To the beginning of five minutes."""
    pool.clock.advance(300 - pool.clock.now().timestamp() % 300)


def count(pool: Pool) -> Stats:
    return operations.count(clock=pool.clock)


def test_one_in_five_minutes_is_kept_and_the_last_is_shown(pool: Pool) -> None:
    align(pool)
    pool.fill(2)
    first = count(pool)
    pool.clock.advance(200)
    pool.take()
    latest = count(pool)
    pool.clock.advance(100)
    next_one = count(pool)

    now = pool.clock.now()
    kept = queries.counts_between(since=now - _DAY, until=now)
    assert [one.counts[Status.AVAILABLE] for one in kept] == [2, 1]
    assert kept[1].counted_at - kept[0].counted_at == timedelta(minutes=5)
    assert kept[0].counts == first.counts
    assert latest.counts == next_one.counts == kept[1].counts
    last = queries.stats()
    assert last is not None
    assert last.counted_at == now.replace(microsecond=0)


def test_a_span_is_answered_whole_and_no_further(pool: Pool) -> None:
    align(pool)
    pool.fill(1)
    began = pool.clock.now()
    for _ in range(30):
        count(pool)
        pool.clock.advance(300)

    kept = queries.counts_between(since=began + timedelta(minutes=20), until=began + timedelta(minutes=40))

    assert [one.counted_at for one in kept] == [began + timedelta(minutes=minutes) for minutes in (20, 25, 30, 35, 40)]
    assert len(queries.counts_between(since=began - _DAY, until=pool.clock.now())) == 30
    assert queries.counts_between(since=pool.clock.now(), until=began) == ()


def test_old_ones_go_in_small_steps(pool: Pool) -> None:
    align(pool)
    for _ in range(130):
        count(pool)
        pool.clock.advance(300)
    pool.clock.advance((8 * _DAY).total_seconds() - 25 * 300)
    now = pool.clock.now()

    assert [operations.forget_old(now=now) for _ in range(3)] == [100, 6, 0]
    assert len(queries.counts_between(since=now - 30 * _DAY, until=now)) == 24


def test_a_provider_that_is_down_leaves_no_gap(upstream: Upstream) -> None:
    upstream.fill(2)
    upstream.later()
    upstream.set(fail_list=1)
    with pytest.raises(Unavailable):
        upstream.sync()

    last = queries.stats()
    assert last is not None
    assert last.counted_at == upstream.pool.clock.now().replace(microsecond=0)
    with pytest.raises(Unavailable):
        upstream.sync(apply=False)
