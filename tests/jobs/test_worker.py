"""A real worker whose processes are killed. Every wait has an end that no good run comes near."""

from __future__ import annotations

import contextlib
import itertools
import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from django.db import connection
from django_q.models import OrmQ, Schedule
from django_q.tasks import async_task

from accessportal.jobs.schedules import Line
from accessportal.kernel.ports import after_commit
from accessportal.observe import heartbeats
from tests.settings import ON_POSTGRES

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.slow]


def database_url() -> str:
    """Of the test's own database."""
    name = connection.settings_dict["NAME"]
    return f"{os.environ['PORTAL_DATABASE_URL'].rpartition('/')[0]}/{name}" if ON_POSTGRES else f"sqlite:///{name}"


class Worker:
    """``run_worker`` on the test's own database, with nothing of AWS within reach."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._log = folder / "worker.log"
        environment = dict(
            os.environ,
            PORTAL_DATABASE_URL=database_url(),
            PORTAL_WORKERS="1",
            PORTAL_LOG_JSON="false",
            AWS_ENDPOINT_URL="http://127.0.0.1:9",
            PORTAL_ALLOWED_HOSTS="localhost",
            DJANGO_SETTINGS_MODULE="accessportal.settings",
        )
        with self._log.open("wb") as log:
            self.process = subprocess.Popen(
                [sys.executable, "manage.py", "run_worker"], env=environment, stderr=log, start_new_session=True
            )

    def log(self) -> str:
        return self._log.read_text()

    def pids(self, place: str) -> list[int]:
        """Of every process that was started there, the first one first."""
        found = re.findall(r"worker\.started.*", self.log())
        plain = [re.sub(r"\x1b\[\d*m", "", line) for line in found]
        return [int(match[1]) for line in plain if f"place={place}" in line and (match := re.search(r"pid=(\d+)", line))]

    def is_running(self) -> bool:
        assert self.process.poll() is None
        return bool(self.pids("slow-1"))

    def kill(self, *places: str) -> None:
        """The processes at these places die, and others are there."""
        before = {place: self.pids(place) for place in places}
        for pids in before.values():
            os.kill(pids[-1], signal.SIGKILL)
        wait_until(lambda: all(len(self.pids(place)) > len(pids) for place, pids in before.items()))

    def put(self, task: str, name: str, line: Line) -> Path:
        path = self.folder / name
        async_task(f"tests.jobs.probes.{task}", str(path), q_options={"cluster": line.value, "timeout": 600})
        return path

    def does_a_job_of(self, line: Line) -> bool:
        path = self.put("touch", f"done-{time.monotonic_ns()}", line)
        wait_until(path.exists)
        return True


def wait_until(is_so: Callable[[], bool], *, seconds: float = 180) -> None:
    deadline = time.monotonic() + seconds
    while not is_so():
        assert time.monotonic() < deadline, "it never came to be"
        time.sleep(0.05)


@pytest.fixture
def worker(tmp_path: Path) -> Iterator[Worker]:
    started = Worker(tmp_path)
    try:
        wait_until(started.is_running)
        yield started
    finally:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(started.process.pid, signal.SIGKILL)
        started.process.wait()
        # A test that fails shows it.
        sys.stderr.write(started.log())


def wait_for_beats(*lines: Line) -> None:
    """The lines' schedules are due, and are done."""
    began = datetime.now(UTC)
    Schedule.objects.filter(name__in=[f"show_{line.part}" for line in lines]).update(next_run=began)

    def has_beaten(line: Line) -> bool:
        beat = heartbeats.last_beat(line.part)
        return beat is not None and beat.beat_at >= began

    wait_until(lambda: all(map(has_beaten, lines)))


def test_whoever_is_killed_the_jobs_go_on_and_a_stop_takes_no_longer_than_it_may(worker: Worker) -> None:
    assert worker.does_a_job_of(Line.SWEEP)
    # Waiting for a task: each process of a line, so that none is left that might have had nothing to do with it.
    worker.kill("sweep-1", "sweep-2", "sweep-3", "urgent-1")
    assert worker.does_a_job_of(Line.SWEEP)
    assert worker.does_a_job_of(Line.URGENT)
    # The one that puts what is due into the lines.
    worker.kill("schedules")
    wait_for_beats(Line.SWEEP)

    # One that does not listen, because its task does not.
    wait_until(worker.put("stay_for_ever", "deaf", Line.SLOW).exists)
    worker.process.terminate()
    assert worker.process.wait(60) == 0
    # Whoever was killed ends a moment after the signal.
    wait_until(lambda: not [pid for pid in worker.pids("slow-1") if Path(f"/proc/{pid}").exists()])


def test_what_a_killed_process_had_in_hand_comes_back(worker: Worker) -> None:
    told = worker.put("stay", "pids", Line.SLOW)
    wait_until(lambda: told.exists() and bool(told.read_text()))
    held = OrmQ.objects.get(key=Line.SLOW.value, payload__isnull=False, lock__gt=datetime.now(UTC))

    os.kill(int(told.read_text()), signal.SIGKILL)
    # Its hold runs out within a minute of the last time that it was renewed; the test does not wait for that.
    wait_until(lambda: len(worker.pids("slow-1")) >= 2)
    assert held.lock <= datetime.now(UTC) + timedelta(minutes=1)
    OrmQ.objects.filter(pk=held.pk).update(lock=datetime.now(UTC))

    wait_until(lambda: len(told.read_text().splitlines()) == 2)
    wait_until(lambda: not OrmQ.objects.filter(pk=held.pk).exists())


def test_slow_jobs_delay_no_tick(worker: Worker) -> None:
    wait_until(worker.put("stay_for_ever", "first", Line.SLOW).exists)
    for number in range(4):
        worker.put("stay_for_ever", f"waits-{number}", Line.SLOW)

    after_commit("carry_out", request_id="none")
    wait_for_beats(Line.SWEEP, Line.URGENT)

    assert OrmQ.objects.filter(key=Line.SLOW.value).count() >= 5


def test_without_their_keeper_processes_end_by_themselves(worker: Worker) -> None:
    idle = worker.pids("urgent-1")[-1]

    worker.process.kill()

    wait_until(lambda: not Path(f"/proc/{idle}").exists())


def test_a_process_that_does_not_move_is_replaced() -> None:
    command = [sys.executable, "-m", "tests.jobs.probes"]
    with subprocess.Popen(
        command, env=dict(os.environ, DJANGO_SETTINGS_MODULE="tests.settings"), stderr=subprocess.PIPE, text=True
    ) as keeper:
        assert keeper.stderr is not None
        silent = [line for line in itertools.islice(keeper.stderr, 3) if "worker.silent" in line]
        keeper.terminate()
    # The first one, and the one that was there instead of it.
    assert (len(silent), keeper.returncode) == (2, 0)
