"""The demo's pool: filled once, some of it lent, with a week of counts."""

from __future__ import annotations

from datetime import timedelta

import pytest

from accessportal.demo import loading as demo
from accessportal.demo.sandboxes import SANDBOXES, past_counts
from accessportal.rules.loading import read_rules
from accessportal.sandboxes import queries
from accessportal.sandboxes.states import Status
from accessportal.twin.provider_world import _SORTS
from accessportal.upstream import client as upstream_client
from accessportal.upstream.client import HttpProvider
from tests.conftest import START, FakeClock
from tests.fixtures_provider import URL, TwinAdapter


def test_the_counts_of_the_past_are_whole_and_of_a_week() -> None:
    counts = list(past_counts(START))

    assert {stats.total for stats in counts} == {SANDBOXES}
    assert all(count >= 0 for stats in counts for count in stats.counts.values())
    assert counts[0].counted_at == START - timedelta(minutes=15)
    assert counts[-1].counted_at == START - timedelta(days=7)
    assert len({stats.counts[Status.ALLOCATED] for stats in counts}) > 10


def test_no_rule_of_the_demo_promises_more_than_its_sandboxes_give() -> None:
    """A request is judged by the shortest of the pool."""
    rules = [rule for rule in read_rules(demo._RULES_FILE.read_bytes()) if rule.kind == "sandbox"]

    assert max(rule.max_duration_seconds for rule in rules) == 8 * 3600
    assert min(hours for _, hours in _SORTS) >= 8


def test_a_pool_is_filled_once(
    tables: None, clock: FakeClock, provider: HttpProvider, provider_adapter: TwinAdapter, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(upstream_client, "_settings", upstream_client.UpstreamSettings(url=URL))
    monkeypatch.setattr(upstream_client, "_provider", provider)
    seeded: list[int] = []

    def seed(*, provider_url: str, count: int, progress: object) -> None:
        seeded.append(count)
        for number in range(count):
            provider_adapter.twin.create(f"demo-{number}", name=f"lab-python-{number}")

    monkeypatch.setattr(demo, "seed_sandboxes", seed)
    for _ in range(2):
        demo._fill_pool_once(clock, lambda *_: None)

    stats = queries.stats()
    assert stats is not None
    assert seeded == [stats.total] == [SANDBOXES]
    assert stats.counts[Status.ALLOCATED] == 7
    kept = queries.counts_between(since=START - timedelta(days=8), until=START)
    assert len(kept) >= 24 * 4 + 6 * 12


def test_a_real_provider_gets_none(tables: None, clock: FakeClock, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(upstream_client, "_settings", upstream_client.UpstreamSettings(url="https://provider.example"))

    demo._fill_pool_once(clock, lambda *_: None)

    assert queries.stats() is None
