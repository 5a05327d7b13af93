"""A real gunicorn with the portal's own settings of it, before a store that takes every connection and answers none."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import socket
import subprocess
import sys
import threading
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from accessportal.demo.env import free_port

pytestmark = pytest.mark.slow

_THREADS = 8
_TOKEN = "apt_abcdefghijkl_" + "x" * 43


class Store:
    """Takes connections, and counts them."""

    def __init__(self) -> None:
        self._socket = socket.create_server(("127.0.0.1", 0), backlog=64)
        self.asked = threading.Semaphore(0)
        self._taken: list[socket.socket] = []
        threading.Thread(target=self._take, daemon=True).start()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self._socket.getsockname()[1]}"

    def _take(self) -> None:
        with contextlib.suppress(OSError):
            while True:
                self._taken.append(self._socket.accept()[0])
                self.asked.release()

    def close(self) -> None:
        for one in (self._socket, *self._taken):
            one.close()


class Web:
    def __init__(self, folder: Path, store: Store) -> None:
        self.port = free_port()
        self.log = folder / "web.log"
        environment = {
            "PATH": os.environ["PATH"],
            "PYTHONWARNINGS": "ignore",
            "AWS_ENDPOINT_URL": store.url,
            "AWS_ACCESS_KEY_ID": "testing",
            "AWS_SECRET_ACCESS_KEY": "testing",
            "PORTAL_DYNAMODB_READ_SECONDS": "60",
            "PORTAL_DATABASE_URL": f"sqlite:///{folder / 'portal.sqlite3'}",
            "PORTAL_SECRET_KEY": "a-secret-for-tests-alone-" * 3,
            "PORTAL_WEB_THREADS": str(_THREADS),
            "PORTAL_ALLOWED_HOSTS": "access.example.com",
            "PORTAL_DEMO": "false",
        }
        command = [
            sys.executable,
            "-m",
            "gunicorn",
            "accessportal.wsgi:application",
            "--bind",
            f"127.0.0.1:{self.port}",
            "--no-control-socket",
        ]
        with self.log.open("wb") as log:
            self.process = subprocess.Popen(command, env=environment, stdout=log, stderr=log, start_new_session=True)

    def get(self, path: str, **headers: str) -> int:
        request = urllib.request.Request(f"http://127.0.0.1:{self.port}{path}", headers=headers)
        try:
            with urllib.request.urlopen(request, timeout=60) as response:
                return int(response.status)
        except urllib.error.HTTPError as error:
            return error.code

    def answers(self) -> bool:
        assert self.process.poll() is None, self.log.read_text()
        try:
            return self.get("/healthz") == 200
        except OSError:
            return False

    def kill(self) -> None:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self.process.pid, signal.SIGKILL)
        self.process.wait()

    def lines(self) -> list[dict[str, Any]]:
        return [json.loads(line) for line in self.log.read_text().splitlines()]


@pytest.fixture
def store() -> Iterator[Store]:
    made = Store()
    yield made
    made.close()


@pytest.fixture
def web(tmp_path: Path, store: Store) -> Iterator[Web]:
    started = Web(tmp_path, store)
    try:
        deadline = time.monotonic() + 180
        while not started.answers():
            assert time.monotonic() < deadline, started.log.read_text()
            time.sleep(0.05)
        yield started
    finally:
        started.kill()


def ask_as_a_program(web: Web) -> int:
    return web.get("/v1/admin/stats", Authorization=f"Bearer {_TOKEN}", Host="access.example.com", **{"X-Forwarded-Proto": "https"})


def test_a_store_that_hangs_keeps_no_probe_waiting_and_every_line_is_json(web: Web, store: Store) -> None:
    with ThreadPoolExecutor(_THREADS // 2) as threads:
        stuck = [threads.submit(ask_as_a_program, web) for _ in range(_THREADS // 2)]
        for _ in stuck:
            assert store.asked.acquire(timeout=60)
        # Every seat is taken, and stays so.
        beyond = [ask_as_a_program(web) for _ in range(6)]
        began = time.monotonic()
        alive = [web.get("/healthz", Host="10.0.3.17:8000") for _ in range(20)]
        took = time.monotonic() - began
        assert not any(one.done() for one in stuck)
        lines = web.lines()
        web.kill()

    assert beyond == [503] * 6
    assert alive == [200] * 20
    # The store's answer is waited for twice as long.
    assert took < 30
    assert {"gunicorn.error", "gunicorn.access"} <= {line["logger"] for line in lines}
    answered = [line for line in lines if line["event"] == "request_answered"]
    assert {line["request"] for line in answered} == {"GET /v1/admin/stats"}, "probes are below INFO"
    refused = [line for line in answered if line["code"] == 503]
    assert len(refused) >= 6
    assert all(line["duration_ms"] > 0 and line["ip"] == "127.0.0.1" and line["level"] == "info" for line in refused)
    assert _TOKEN not in web.log.read_text()
