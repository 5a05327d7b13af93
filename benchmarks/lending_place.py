"""Where the clients of :mod:`benchmarks.lending` borrow: server processes, cleaner processes, and one that kills them at random.

Every process is started with this process's environment, which names the tables, the database and the provider.
"""

from __future__ import annotations

import contextlib
import os
import random
import signal
import subprocess
import sys
import threading
import time
import urllib.request
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from accessportal.demo.env import free_port

_START_SECONDS = 120.0
_KILL_GAP_SECONDS = (5.0, 20.0)
_DOWN_SECONDS = (0.0, 2.0)
# Of a hundred kills of a server: only its worker, which gunicorn itself starts anew.
_WORKER_ALONE_SHARE = 0.3


class Part:
    """A process of its own group, that may be killed and started again. ``settings`` go before this process's environment."""

    def __init__(self, name: str, command: Sequence[str], log: Path, *, settings: Mapping[str, str] | None = None) -> None:
        self.name = name
        self._command = command
        self._log = log
        self._settings = dict(settings or {})
        self._process: subprocess.Popen[bytes] | None = None

    def start(self) -> None:
        with self._log.open("a") as log:
            settings = {**os.environ, **self._settings}
            self._process = subprocess.Popen(self._command, stdout=log, stderr=log, env=settings, start_new_session=True)

    @property
    def pid(self) -> int:
        assert self._process is not None, "started before"
        return self._process.pid

    def cpu_seconds(self) -> float:
        """What the process and its children have used of the processors so far."""
        pids = [str(self.pid), *self._children()]
        used = [Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[11:13] for pid in pids]
        return sum(int(user) + int(system) for user, system in used) / os.sysconf("SC_CLK_TCK")

    def is_running(self) -> bool:
        return self._process is not None and self._process.poll() is None

    def kill(self) -> None:
        """The process and its children get no chance to do anything more."""
        if self._process is not None:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(self._process.pid, signal.SIGKILL)
            self._process.wait()

    def kill_children(self) -> None:
        for child in self._children():
            with contextlib.suppress(ProcessLookupError):
                os.kill(int(child), signal.SIGKILL)

    def _children(self) -> list[str]:
        return Path(f"/proc/{self.pid}/task/{self.pid}/children").read_text().split()

    def stop(self) -> None:
        if self._process is not None:
            self._process.terminate()
            with contextlib.suppress(subprocess.TimeoutExpired):
                self._process.wait(timeout=60)
            self.kill()


class Server(Part):
    """The portal under gunicorn, on a port of its own."""

    def __init__(self, number: int, folder: Path, *, settings: Mapping[str, str] | None = None) -> None:
        self.port = free_port()
        flags = ["--bind", f"127.0.0.1:{self.port}", "--workers", "1"]
        flags += ["--keep-alive", "75", "--no-control-socket"]
        command = [sys.executable, "-m", "gunicorn", "accessportal.wsgi:application", *flags]
        # Half of them work at a time: as many as there may be clients, so that nobody is sent away to come again.
        settings = {"PORTAL_WEB_THREADS": "128", **(settings or {})}
        super().__init__(f"server-{number}", command, folder / f"server-{number}.log", settings=settings)


def wait_until_it_answers(part: Part, port: int) -> None:
    """Whatever it says."""
    deadline = time.monotonic() + _START_SECONDS
    while part.is_running() and time.monotonic() < deadline:
        with contextlib.suppress(OSError), urllib.request.urlopen(f"http://127.0.0.1:{port}/healthz", timeout=5):
            return
        time.sleep(0.2)
    raise SystemExit(f"{part.name} did not answer within {_START_SECONDS:.0f} s; see its log beside the receipts.")


class Cleaner(Part):
    """See :mod:`benchmarks.lending_cleaner`."""

    def __init__(self, number: int, folder: Path) -> None:
        command = [sys.executable, "-m", "benchmarks.lending_cleaner", str(folder), str(number)]
        super().__init__(f"cleaner-{number}", command, folder / f"cleaner-{number}.log")


@contextlib.contextmanager
def place(folder: Path, *, servers: int, cleaners: int) -> Iterator[tuple[list[Server], list[Cleaner]]]:
    """All of them answer; they are stopped at the end."""
    fronts = [Server(number, folder) for number in range(servers)]
    backs = [Cleaner(number, folder) for number in range(cleaners)]
    try:
        for part in (*fronts, *backs):
            part.start()
        for front in fronts:
            wait_until_it_answers(front, front.port)
        yield fronts, backs
    finally:
        for part in (*fronts, *backs):
            part.stop()


class Killer:
    """Kills one part after the other, at random, and starts it again a moment later."""

    def __init__(self, servers: Sequence[Server], cleaners: Sequence[Cleaner], *, seed: int) -> None:
        self.kills = dict.fromkeys(("server", "worker of a server", "cleaner"), 0)
        self._servers = servers
        self._cleaners = cleaners
        self._chance = random.Random(seed)
        self._done = threading.Event()
        self._thread = threading.Thread(target=self._run)

    def __enter__(self) -> Killer:
        self._thread.start()
        return self

    def __exit__(self, *_error: object) -> None:
        self._done.set()
        self._thread.join()

    def _run(self) -> None:
        while not self._done.wait(self._chance.uniform(*_KILL_GAP_SECONDS)):
            victim = self._chance.choice([*self._servers, *self._cleaners])
            if isinstance(victim, Server) and self._chance.random() < _WORKER_ALONE_SHARE:
                self.kills["worker of a server"] += 1
                victim.kill_children()
                continue
            self.kills["server" if isinstance(victim, Server) else "cleaner"] += 1
            victim.kill()
            self._done.wait(self._chance.uniform(*_DOWN_SECONDS))
            victim.start()
