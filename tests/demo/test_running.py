"""When the portal on one machine counts as started: the pages must answer, the worker may be late."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import nullcontext
from datetime import UTC, datetime
from pathlib import Path
from types import SimpleNamespace

import pytest

from accessportal.demo import running
from accessportal.demo.supervisor import PartFailed, StopAsked, Supervisor, only_one
from accessportal.kernel.clock import SystemClock
from accessportal.observe import heartbeats
from tests.demo.test_supervisor import PATIENT, python

pytestmark = pytest.mark.django_db


@pytest.fixture
def wait(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[..., list[str]]:
    """Wait for a web server of which these probes are well, and return what was said meanwhile."""
    monkeypatch.setattr(running, "_READY_SECONDS", 0)
    # Of a test's database the one connection is the test's.
    monkeypatch.setattr("django.db.connections.close_all", lambda: None)

    def waited(*well: str, worker: str = PATIENT) -> list[str]:
        said: list[str] = []
        monkeypatch.setattr(running, "_answers", lambda url: lambda: url.rpartition("/")[2] in well)
        with only_one(tmp_path / "lock") as lock:
            supervisor = Supervisor(logs=tmp_path / "logs", lock=lock, say=said.append)
            parts = supervisor.start("web", python(PATIENT)), supervisor.start("worker", python(worker))
            try:
                if worker != PATIENT and parts[1].process is not None:
                    parts[1].process.wait()
                running._wait_until_ready(supervisor, *parts, 8000, said.append)
            finally:
                supervisor.stop()
        return said

    return waited


def test_a_worker_that_is_late_is_told_and_the_pages_stay(wait: Callable[..., list[str]]) -> None:
    heartbeats.beat("urgent_line", now=datetime.now(UTC))

    told = wait("readyz")[-1]

    assert "worker.log" in told
    assert "slow_line: No job of this line was ever done." in told
    assert "urgent_line" not in told


def test_of_a_worker_in_time_nothing_is_told(wait: Callable[..., list[str]]) -> None:
    assert wait("readyz", "workz") == ["Waiting for the worker's first jobs …"]


def test_without_pages_it_ends(wait: Callable[..., list[str]]) -> None:
    with pytest.raises(PartFailed, match=r"(?s)web did not answer within 0 s\..*web\.log"):
        wait("workz")


def test_a_worker_that_ends_is_no_late_one(wait: Callable[..., list[str]]) -> None:
    with pytest.raises(PartFailed, match=r"(?s)worker ended with code 1.*worker \| no queue"):
        wait("readyz", worker="raise SystemExit('no queue')")


def test_that_a_first_start_was_stopped_is_told_at_the_next(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    stops, said, versions = [True, False], list[str](), [0]

    def load(**_given: object) -> None:
        versions[0] = 1
        if stops.pop(0):
            raise StopAsked

    monkeypatch.setenv("AWS_ENDPOINT_URL", "http://127.0.0.1:1")
    monkeypatch.setattr(running, "_UNFINISHED", tmp_path / "unfinished")
    monkeypatch.setattr(running, "hurried", lambda _url: nullcontext())
    monkeypatch.setattr(running, "load_demo", load)
    monkeypatch.setattr("accessportal.rules.queries.current_set", lambda: SimpleNamespace(version=versions[0]))

    with pytest.raises(StopAsked):
        running._load(said.append, SystemClock())
    running._load(said.append, SystemClock())
    assert "parts of the demo are missing" in said[-1]

    (tmp_path / "unfinished").unlink()
    versions[0], stops[:] = 0, [False, False]
    running._load(said.append, SystemClock())
    told = len(said)
    running._load(said.append, SystemClock())
    assert len(said) == told
