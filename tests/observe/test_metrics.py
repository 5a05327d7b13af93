"""What scrapers are told, also while something that figures come from is away."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from datetime import timedelta
from functools import partial

import pytest
from botocore.client import BaseClient
from botocore.exceptions import EndpointConnectionError
from django.contrib.auth.models import User
from django.db import OperationalError
from django.db.backends.utils import CursorWrapper
from django.test import Client
from prometheus_client.core import Metric
from pytest_django.fixtures import Settings

from accessportal.audit import queries as audit
from accessportal.catalog import operations as catalog
from accessportal.identity.operations import ensure_demo_user
from accessportal.observe import health, heartbeats, metrics
from tests.fixtures_story import Story

TOKEN = "a-token-for-tests"


def sign_in(client: Client, email: str) -> User:
    user = ensure_demo_user(email=email, name="Somebody", password="a-password-for-tests")
    client.force_login(user)
    return user


@contextmanager
def no_database() -> Iterator[None]:
    def away(*_: object, **__: object) -> None:
        raise OperationalError("server closed the connection unexpectedly")

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(CursorWrapper, "execute", away)
        yield


@contextmanager
def no_dynamodb() -> Iterator[None]:
    def away(*_: object, **__: object) -> None:
        raise EndpointConnectionError(endpoint_url="https://dynamodb")

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(BaseClient, "_make_api_call", away)
        yield


Backend = Callable[[], AbstractContextManager[None]]
BACKENDS: dict[str, Backend] = {"database": no_database, "dynamodb": no_dynamodb}
# Of each family: what it is read from, and a figure of it.
FAMILIES = {
    "runs": ("database", 'accessportal_last_run_ok{part="tick"} 1.0'),
    "catalog": ("database", "accessportal_catalog_synced_timestamp_seconds"),
    "health": ("", "accessportal_ready"),
    "requests": ("dynamodb", "accessportal_stuck_requests"),
    "events": ("dynamodb", "accessportal_unpublished_events"),
    "restores": ("dynamodb", "accessportal_grants_held"),
}


@pytest.fixture
def told(story: Story, client: Client, settings: Settings) -> Callable[[], list[str]]:
    """The lines of the figures, as a program reads them."""
    settings.METRICS_TOKEN = TOKEN

    def ask() -> list[str]:
        response = client.get("/metrics", headers={"authorization": f"Bearer {TOKEN}"})
        assert response.status_code == 200
        return [line for line in response.content.decode().splitlines() if not line.startswith("#")]

    return ask


def has(lines: list[str], beginning: str) -> bool:
    return any(line.startswith(beginning) for line in lines)


def labels(lines: list[str], name: str) -> dict[str, float]:
    """Of a figure with one label: its values."""
    parts = [line.removeprefix(name).split('"') for line in lines if line.startswith(name + "{")]
    return {part[1]: float(part[2].strip("} ")) for part in parts}


def test_every_family_is_in_the_table() -> None:
    assert metrics.FAMILIES.keys() == FAMILIES.keys()


@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize("family", FAMILIES)
def test_a_family_is_told_unless_its_own_backend_is_away(story: Story, told: Callable[[], list[str]], family: str, backend: str) -> None:
    catalog.sync_catalog(now=story.clock.now(), clock=story.clock)
    heartbeats.beat("tick", now=story.clock.now())
    source, figure = FAMILIES[family]

    with BACKENDS[backend]():
        lines = told()

    is_up = source != backend
    assert labels(lines, "accessportal_metrics_family_up")[family] == float(is_up)
    assert has(lines, figure) is is_up


@pytest.mark.parametrize("family", FAMILIES)
def test_a_mistake_in_one_family_leaves_the_others(told: Callable[[], list[str]], monkeypatch: pytest.MonkeyPatch, family: str) -> None:
    def broken(_now: object) -> Iterator[Metric]:
        raise ZeroDivisionError

    monkeypatch.setitem(metrics.FAMILIES, family, metrics.Family(broken, is_in_store=metrics.FAMILIES[family].is_in_store))

    assert labels(told(), "accessportal_metrics_family_up") == {name: float(name != family) for name in FAMILIES}


def test_a_store_that_hangs_is_waited_for_once_in_each_matter(told: Callable[[], list[str]], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(health, "STORE_SECONDS", 0.2)
    go_on, asked = threading.Event(), []

    def hang(*_: object, **__: object) -> None:
        asked.append(threading.current_thread().name)
        assert go_on.wait(60)
        raise EndpointConnectionError(endpoint_url="https://dynamodb")

    with monkeypatch.context() as patch:
        patch.setattr(BaseClient, "_make_api_call", hang)
        lines = told()
        waited = len(asked)
        go_on.set()
        for asker in (health.TABLES, health.FIGURES):
            assert asker.late is not None
            asker.late.exception(60)

    assert waited == 2
    up = {"runs": 1, "catalog": 1, "health": 1, "requests": 0, "events": 0, "restores": 0}
    assert labels(lines, "accessportal_metrics_family_up") == up
    assert labels(lines, "accessportal_missing")["tables"] == 1


def test_health_is_told_part_by_part(story: Story, told: Callable[[], list[str]]) -> None:
    before = told()
    for part in heartbeats.LINES:
        heartbeats.beat(part, now=story.clock.now())
    health.WORK.forget()
    after = told()

    assert {"accessportal_ready 1.0", "accessportal_working 0.0"} <= set(before)
    assert labels(before, "accessportal_missing") == dict.fromkeys(heartbeats.LINES, 1.0)
    assert {"accessportal_ready 1.0", "accessportal_working 1.0"} <= set(after)
    assert not has(after, "accessportal_missing")


@pytest.mark.parametrize("bound", [2, 500])
def test_every_count_that_stopped_at_its_bound_says_so(
    story: Story, told: Callable[[], list[str]], monkeypatch: pytest.MonkeyPatch, bound: int
) -> None:
    monkeypatch.setattr(metrics, "STUCK_COUNTED_TO", bound)
    monkeypatch.setattr(audit, "count_unpublished", partial(audit.count_unpublished, counted_to=bound))
    for _ in range(3):
        story.ask()
    story.clock.advance(90)

    lines = told()

    is_cut = float(bound == 2)
    assert labels(lines, "accessportal_count_is_lower_bound") == {"stuck_requests": is_cut, "unpublished_events": is_cut}
    assert f"accessportal_stuck_requests {min(bound, 3):.1f}" in lines


def test_a_moment_ahead_of_now_is_no_recent_one(story: Story, told: Callable[[], list[str]]) -> None:
    """An alarm by the age of the last run would wait for two hours."""
    story.clock.advance(7200)
    heartbeats.beat("tick", now=story.clock.now())
    catalog.sync_catalog(now=story.clock.now(), clock=story.clock)
    story.clock.advance(-7200)

    lines = told()

    assert labels(lines, "accessportal_last_run_timestamp_seconds") == {"tick": 0.0}
    assert "accessportal_catalog_synced_timestamp_seconds 0.0" in lines


@pytest.mark.parametrize(("email", "code"), [("olga@example.com", 200), ("ana@example.com", 200), ("alice@example.com", 403)])
def test_metrics_are_for_operators_and_auditors(story: Story, client: Client, email: str, code: int) -> None:
    sign_in(client, email)

    assert client.get("/metrics").status_code == code


def test_metrics_are_for_programs_with_the_token(story: Story, client: Client, settings: Settings) -> None:
    assert client.get("/metrics", headers={"authorization": "Bearer "}).status_code == 403
    settings.METRICS_TOKEN = TOKEN

    assert client.get("/metrics").status_code == 403
    assert client.get("/metrics", headers={"authorization": "Bearer another"}).status_code == 403
    assert client.get("/metrics", headers={"authorization": f"Bearer {TOKEN}"}).status_code == 200


def test_metrics_tell_the_last_runs_and_what_is_stuck(story: Story, client: Client, settings: Settings) -> None:
    settings.METRICS_TOKEN = TOKEN
    heartbeats.beat("tick", now=story.clock.now() - timedelta(seconds=30), is_ok=False, detail={"revoked": 3, "failed": 1})
    story.ask()
    story.clock.advance(90)

    told = client.get("/metrics", headers={"authorization": f"Bearer {TOKEN}"}).content.decode()

    assert 'accessportal_last_run_ok{part="tick"} 0.0' in told
    assert 'accessportal_last_run_items{kind="revoked",part="tick"} 3.0' in told
    assert "accessportal_stuck_requests 1.0" in told
    assert "accessportal_stuck_oldest_seconds 90.0" in told
    assert "accessportal_catalog_synced_timestamp_seconds" in told
