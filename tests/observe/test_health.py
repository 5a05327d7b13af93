"""What probes and scrapers are told."""

from __future__ import annotations

from datetime import timedelta

import pytest
from django.contrib.auth.models import User
from django.db import OperationalError
from django.test import Client
from pytest_django.fixtures import Settings

from accessportal.access_requests.models import RequestItem
from accessportal.identity.operations import ensure_demo_user
from accessportal.jobs.lines import Line
from accessportal.observe import heartbeats
from tests.fixtures_story import Story


def sign_in(client: Client, email: str) -> User:
    user = ensure_demo_user(email=email, name="Somebody", password="a-password-for-tests")
    client.force_login(user)
    return user


def test_a_process_that_answers_is_alive(client: Client) -> None:
    response = client.get("/healthz")

    assert (response.status_code, response.json()) == (200, {"status": "alive"})
    assert "no-store" in response["Cache-Control"]


def beat_all(story: Story) -> None:
    for line in heartbeats.LINES:
        heartbeats.beat(line, now=story.clock.now())


def test_ready_when_tables_answer_and_every_line_is_served(story: Story, client: Client) -> None:
    beat_all(story)

    response = client.get("/readyz")

    assert (response.status_code, response.json()) == (200, {"status": "ready"})


def test_not_ready_before_a_job_was_ever_done(story: Story, client: Client) -> None:
    response = client.get("/readyz")

    assert response.status_code == 503
    assert set(response.json()["missing"]) == set(heartbeats.LINES) == {line.part for line in Line}
    assert "run_worker" in response.json()["missing"]["sweep_line"]


@pytest.mark.parametrize("late", heartbeats.LINES)
def test_not_ready_when_one_line_stands_for_two_minutes(story: Story, client: Client, late: str) -> None:
    beat_all(story)
    story.clock.advance(119)
    assert client.get("/readyz").status_code == 200
    for line in set(heartbeats.LINES) - {late}:
        heartbeats.beat(line, now=story.clock.now())

    story.clock.advance(1)

    missing = client.get("/readyz").json()["missing"]
    assert list(missing) == [late]
    assert "last done at 2026-03-02 09:00:00" in missing[late]


def test_a_beat_from_the_future_is_no_sign_of_life(story: Story, client: Client) -> None:
    beat_all(story)
    heartbeats.beat("sweep_line", now=story.clock.now() + timedelta(hours=2))

    assert list(client.get("/readyz").json()["missing"]) == ["sweep_line"]


def test_not_ready_while_a_table_is_missing(story: Story, client: Client) -> None:
    beat_all(story)
    RequestItem.delete_table()

    response = client.get("/readyz")

    assert response.status_code == 503
    assert list(response.json()["missing"]) == ["tables"]
    assert "ActiveRequests (ResourceNotFoundException)" in response.json()["missing"]["tables"]


def test_not_ready_while_the_database_is_away(story: Story, client: Client, monkeypatch: pytest.MonkeyPatch) -> None:
    def away(_part: str) -> None:
        raise OperationalError("no such table: observe_heartbeat")

    monkeypatch.setattr(heartbeats, "last_beat", away)

    response = client.get("/readyz")

    assert response.status_code == 503
    assert "PORTAL_DATABASE_URL" in response.json()["missing"]["sweep_line"]


@pytest.mark.parametrize(("email", "code"), [("olga@example.com", 200), ("ana@example.com", 200), ("alice@example.com", 403)])
def test_metrics_are_for_operators_and_auditors(story: Story, client: Client, email: str, code: int) -> None:
    sign_in(client, email)

    assert client.get("/metrics").status_code == code


def test_metrics_are_for_programs_with_the_token(story: Story, client: Client, settings: Settings) -> None:
    assert client.get("/metrics", headers={"authorization": "Bearer "}).status_code == 403
    settings.METRICS_TOKEN = "a-token-for-tests"

    assert client.get("/metrics").status_code == 403
    assert client.get("/metrics", headers={"authorization": "Bearer another"}).status_code == 403
    assert client.get("/metrics", headers={"authorization": "Bearer a-token-for-tests"}).status_code == 200


def test_metrics_tell_the_last_runs_and_what_is_stuck(story: Story, client: Client, settings: Settings) -> None:
    settings.METRICS_TOKEN = "a-token-for-tests"
    heartbeats.beat("tick", now=story.clock.now() - timedelta(seconds=30), is_ok=False, detail={"revoked": 3, "failed": 1})
    story.ask()
    story.clock.advance(90)

    told = client.get("/metrics", headers={"authorization": "Bearer a-token-for-tests"}).content.decode()

    assert 'accessportal_last_run_ok{part="tick"} 0.0' in told
    assert 'accessportal_last_run_items{kind="revoked",part="tick"} 3.0' in told
    assert "accessportal_stuck_requests 1.0" in told
    assert "accessportal_stuck_oldest_seconds 90.0" in told
    assert "accessportal_catalog_synced_timestamp_seconds" in told
