"""What probes and scrapers are told."""

from __future__ import annotations

import threading
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from datetime import datetime, timedelta
from types import SimpleNamespace

import pytest
import structlog
from botocore.client import BaseClient
from django.db import OperationalError
from django.db.backends.utils import CursorWrapper
from django.test import Client
from pytest_django.fixtures import Settings

from accessportal.access_requests.models import RequestItem
from accessportal.jobs.schedules import Line
from accessportal.observe import health, heartbeats
from accessportal.observe.health import Health
from tests.database import taking_no_writes
from tests.fixtures_story import Story


@dataclass(frozen=True, slots=True)
class Told:
    """What a probe says to anybody, and what it says in the log."""

    code: int
    status: str
    missing: dict[str, str]


def ask(client: Client, address: str) -> Told:
    """As the first in a while."""
    health.PAGES.forget()
    health.WORK.forget()
    with structlog.testing.capture_logs() as logs:
        response = client.get(address)
    assert list(response.json()) == ["status"]
    assert "no-store" in response["Cache-Control"]
    missing = [line["missing"] for line in logs if line["event"] == "health.changed"]
    return Told(response.status_code, response.json()["status"], missing[0] if missing else {})


def beat_all(story: Story) -> None:
    for part in (*heartbeats.LINES, heartbeats.TICK):
        heartbeats.beat(part, now=story.clock.now())


WELL = {"/healthz": Told(200, "alive", {}), "/readyz": Told(200, "ready", {}), "/workz": Told(200, "working", {})}


@pytest.mark.parametrize("address", WELL)
@pytest.mark.parametrize("host", ["testserver", "10.0.3.17:8000", "[fd00::7]", "no host at all"])
@pytest.mark.parametrize("secure", [False, True], ids=["anything", "https only"])
def test_probes_answer_whatever_host_they_name_and_over_http(
    story: Story, client: Client, settings: Settings, address: str, host: str, secure: bool
) -> None:
    beat_all(story)
    settings.SECURE_SSL_REDIRECT = secure

    response = client.get(address, headers={"host": host})

    assert (response.status_code, response.json()["status"]) == (200, WELL[address].status)
    assert client.head(address, headers={"host": host}).status_code == 200
    assert client.post(address, headers={"host": host}).status_code == 405


def test_all_is_well(story: Story, client: Client) -> None:
    beat_all(story)

    assert {address: ask(client, address) for address in WELL} == WELL


def test_whether_it_lives_is_asked_of_nothing(client: Client, monkeypatch: pytest.MonkeyPatch) -> None:
    """No mark of a database here: a query would fail the test."""

    def refuse(*_: object, **__: object) -> None:
        raise AssertionError("it asked a store")

    monkeypatch.setattr(BaseClient, "_make_api_call", refuse)

    assert ask(client, "/healthz") == WELL["/healthz"]


def test_what_is_not_well_is_logged_once(story: Story, client: Client, caplog: pytest.LogCaptureFixture) -> None:
    health.WORK.forget()
    codes = [client.get("/workz").status_code for _ in range(3)]

    assert codes == [503] * 3
    assert [record.name for record in caplog.records] == ["accessportal.observe.health"]


def test_dead_workers_take_no_web_server_out(story: Story, client: Client) -> None:
    """Neither before a job was ever done nor when all of them have stopped."""
    before = {address: ask(client, address) for address in WELL}
    beat_all(story)
    story.clock.advance(3600)
    after = {address: ask(client, address) for address in WELL}

    for told in (before, after):
        assert (told["/healthz"], told["/readyz"]) == (WELL["/healthz"], WELL["/readyz"])
        assert (told["/workz"].code, told["/workz"].status) == (503, "not working")
    assert set(before["/workz"].missing) == set(heartbeats.LINES) == {line.part for line in Line}
    assert "run_worker" in before["/workz"].missing["sweep_line"]
    assert set(after["/workz"].missing) == {*heartbeats.LINES, "tick"}


@pytest.mark.parametrize("late", heartbeats.LINES)
def test_not_working_when_one_line_stands_for_two_minutes(story: Story, client: Client, late: str) -> None:
    beat_all(story)
    story.clock.advance(119)
    assert ask(client, "/workz") == WELL["/workz"]
    for line in set(heartbeats.LINES) - {late}:
        heartbeats.beat(line, now=story.clock.now())

    story.clock.advance(1)

    told = ask(client, "/workz")
    assert (told.code, list(told.missing)) == (503, [late])
    assert "last done 2026-03-02 09:00:00" in told.missing[late]


def test_not_working_when_no_tick_comes_to_its_end(story: Story, client: Client) -> None:
    """Its line is served, and each one fails or is killed."""
    beat_all(story)
    story.clock.advance(300)
    for line in heartbeats.LINES:
        heartbeats.beat(line, now=story.clock.now())

    assert (ask(client, "/workz").code, list(ask(client, "/workz").missing)) == (503, ["tick"])


@pytest.mark.parametrize("part", [*heartbeats.LINES, heartbeats.TICK])
def test_a_beat_from_the_future_is_no_sign_of_life(story: Story, client: Client, part: str) -> None:
    beat_all(story)
    heartbeats.beat(part, now=story.clock.now() + timedelta(hours=2))

    assert list(ask(client, "/workz").missing) == [part]


def test_not_ready_while_a_table_is_missing(story: Story, client: Client) -> None:
    beat_all(story)
    RequestItem.delete_table()

    told = {address: ask(client, address) for address in WELL}

    assert (told["/readyz"].code, told["/readyz"].status, list(told["/readyz"].missing)) == (503, "not ready", ["table ActiveRequests"])
    assert "ResourceNotFoundException" in told["/readyz"].missing["table ActiveRequests"]
    assert (told["/healthz"], told["/workz"]) == (WELL["/healthz"], WELL["/workz"])


def test_not_ready_while_the_database_is_away(story: Story, client: Client, monkeypatch: pytest.MonkeyPatch) -> None:
    beat_all(story)

    def away(*_: object, **__: object) -> None:
        raise OperationalError("server closed the connection unexpectedly")

    with monkeypatch.context() as patch:
        patch.setattr(CursorWrapper, "execute", away)
        told = {address: ask(client, address) for address in WELL}

    assert told["/healthz"] == WELL["/healthz"]
    assert (told["/readyz"].code, list(told["/readyz"].missing)) == (503, ["database"])
    assert "PORTAL_DATABASE_URL" in told["/readyz"].missing["database"]
    assert (told["/workz"].code, set(told["/workz"].missing)) == (503, {*heartbeats.LINES, "tick", heartbeats.EVIDENCE, heartbeats.HISTORY})


@pytest.mark.django_db(transaction=True)
def test_not_ready_while_the_database_keeps_nothing(story: Story, client: Client) -> None:
    """It answers, as a reader does after a fail-over."""
    beat_all(story)

    with taking_no_writes():
        told = {address: ask(client, address) for address in WELL}
    story.clock.advance(2)
    health.PAGES.forget()

    assert (told["/readyz"].code, list(told["/readyz"].missing)) == (503, ["database"])
    assert "takes no writes" in told["/readyz"].missing["database"]
    assert (told["/healthz"], told["/workz"]) == (WELL["/healthz"], WELL["/workz"])
    assert ask(client, "/readyz") == WELL["/readyz"]
    assert heartbeats.last_beat(heartbeats.WEB) is not None


def test_one_check_is_shared_and_nobody_waits_for_it(monkeypatch: pytest.MonkeyPatch) -> None:
    began, go_on, checks = threading.Event(), threading.Event(), []

    def check(*, now: datetime) -> Health:
        checks.append(now)
        began.set()
        assert go_on.wait(60)
        return Health({})

    shared = health.Shared(check)
    with ThreadPoolExecutor() as threads:
        first = threads.submit(shared.found)
        assert began.wait(60)
        others = [shared.found() for _ in range(20)]
        go_on.set()
        assert first.result(60).is_well
    assert [one.is_well for one in others] == [False] * 20
    assert [shared.found().is_well for _ in range(20)] == [True] * 20
    assert len(checks) == 1


def test_while_a_check_takes_long_the_former_answer_counts_and_then_no_more(monkeypatch: pytest.MonkeyPatch) -> None:
    seconds, slow = [0.0], [False]
    monkeypatch.setattr("accessportal.observe.health.time", SimpleNamespace(monotonic=lambda: seconds[0]))
    during: list[bool] = []

    def check(*, now: datetime) -> Health:
        if slow[0]:
            for _ in range(2):
                during.append(shared.found().is_well)
                seconds[0] += health.STORE_SECONDS + 1
        return Health({})

    shared = health.Shared(check)
    assert shared.found().is_well
    slow[0], seconds[0] = True, 100.0

    assert shared.found().is_well
    assert during == [True, False]


def test_a_check_that_breaks_is_not_well_and_is_tried_again() -> None:
    wanted: list[Health | ZeroDivisionError] = [Health({}), ZeroDivisionError()]

    def check(*, now: datetime) -> Health:
        found = wanted.pop()
        if isinstance(found, Exception):
            raise found
        return found

    shared = health.Shared(check)
    with pytest.raises(ZeroDivisionError):
        shared.found()
    assert not shared.found().is_well
    shared.forget()
    assert shared.found().is_well


def test_figures_that_take_long_make_no_table_look_silent(story: Story, client: Client, monkeypatch: pytest.MonkeyPatch) -> None:
    go_on = threading.Event()
    with monkeypatch.context() as patch:
        patch.setattr(health, "STORE_SECONDS", 0.05)
        with pytest.raises(TimeoutError):
            health.FIGURES.answer(lambda: go_on.wait(60))
    told = ask(client, "/readyz")
    go_on.set()

    assert told == WELL["/readyz"]
    assert health.FIGURES.late is not None
    assert health.FIGURES.late.result(60)


def test_a_store_that_hangs_is_not_waited_for(story: Story, client: Client, monkeypatch: pytest.MonkeyPatch) -> None:
    """By one thread alone, however often it is asked."""
    go_on, asked = threading.Event(), []

    def hang() -> dict[str, str]:
        asked.append(threading.current_thread().name)
        assert go_on.wait(60)
        return {}

    with monkeypatch.context() as patch:
        patch.setattr(health, "STORE_SECONDS", 0.05)
        patch.setattr(health, "silent_tables", hang)
        told = [ask(client, "/readyz") for _ in range(3)]
    go_on.set()

    assert [(one.code, one.status) for one in told] == [(503, "not ready")] * 3
    assert "did not answer within" in told[0].missing["tables"]
    assert health.TABLES.late is not None
    assert health.TABLES.late.result(60) == {}
    assert len(asked) == 1
    assert ask(client, "/readyz") == WELL["/readyz"]
