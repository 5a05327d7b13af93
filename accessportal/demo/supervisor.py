"""Keeping a few processes running together: started in order, restarted when they die, stopped together."""

from __future__ import annotations

import contextlib
import fcntl
import os
import signal
import subprocess
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO

_POLL_SECONDS = 0.25
_STOP_SECONDS = 8.0
_MAX_RESTARTS = 3
_RESTART_WINDOW_SECONDS = 60.0
_TAIL_LINES = 15


class StopAsked(BaseException):
    """Ctrl-C, or a polite signal. Not an ``Exception``: nobody on the way handles it by mistake."""


class PartFailed(Exception):
    """A part could not be kept running; the message tells which, and the end of its log."""


class NotReady(PartFailed):
    """A part runs, and was not ready in time."""


class AlreadyRunning(Exception):
    """Another supervisor, or something that it left, still runs from this folder."""


@dataclass(slots=True)
class Part:
    """One process. ``log`` gets all it prints."""

    name: str
    command: Sequence[str]
    log: Path
    process: subprocess.Popen[bytes] | None = None
    deaths: list[float] = field(default_factory=list)


class Supervisor:
    """Parts run in sessions of their own: ctrl-C reaches the supervisor alone, which stops them in its order."""

    def __init__(self, *, logs: Path, lock: IO[str], say: Callable[[str], None]) -> None:
        self._logs = logs
        self._lock = lock
        self._say = say
        self._parts: list[Part] = []
        logs.mkdir(mode=0o700, exist_ok=True)

    def start(self, name: str, command: Sequence[str]) -> Part:
        """The process runs; whether it is of any use yet is for :meth:`wait_for` to find out."""
        part = Part(name=name, command=command, log=self._logs / f"{name}.log")
        part.log.write_bytes(b"")
        self._launch(part)
        self._parts.append(part)
        return part

    def wait_for(self, part: Part, is_ready: Callable[[], bool], *, seconds: float) -> None:
        """Return once ``is_ready``. :raises PartFailed: when the process ends before that. :raises NotReady: when ``seconds`` go by."""
        deadline = time.monotonic() + seconds
        while not is_ready():
            if _code(part) is not None:
                raise PartFailed(f"{part.name} ended with code {_code(part)} while starting.\n{_tail(part)}")
            if time.monotonic() > deadline:
                raise NotReady(f"{part.name} did not answer within {seconds:.0f} s.\n{_tail(part)}")
            time.sleep(_POLL_SECONDS)

    def watch(self) -> None:
        """Keep every part running until somebody asks to stop. :raises PartFailed: when one has died more than three times within a
        minute."""
        while True:
            for part in self._parts:
                if _code(part) is not None:
                    self._revive(part)
            time.sleep(_POLL_SECONDS)

    def stop(self) -> None:
        """No part runs any more. The first started goes last, because the others work with it; who takes too long is killed."""
        ground, users = self._parts[:1], self._parts[1:]
        for group in (users, ground):
            for part in group:
                _signal(part, signal.SIGTERM)
            self._wait_for_end(group)
            for part in group:
                _signal(part, signal.SIGKILL)
                if part.process is not None:
                    part.process.wait()
        self._parts.clear()

    def _wait_for_end(self, parts: Sequence[Part]) -> None:
        deadline = time.monotonic() + _STOP_SECONDS
        for part in parts:
            # Whoever takes longer is killed by the caller. Nothing is lost by it: the next tick finds work that was under way.
            with contextlib.suppress(subprocess.TimeoutExpired):
                if part.process is not None:
                    part.process.wait(max(0.0, deadline - time.monotonic()))

    def _revive(self, part: Part) -> None:
        now = time.monotonic()
        part.deaths = [death for death in part.deaths if now - death < _RESTART_WINDOW_SECONDS] + [now]
        if len(part.deaths) > _MAX_RESTARTS:
            raise PartFailed(f"{part.name} keeps dying (last exit code {_code(part)}).\n{_tail(part)}")
        self._say(f"{part.name} ended with code {_code(part)}; starting it again. Its log: {part.log}")
        _signal(part, signal.SIGKILL)
        self._launch(part)

    def _launch(self, part: Part) -> None:
        with part.log.open("ab") as log:
            # The lock goes along: it stays taken while anything that was started from here lives.
            part.process = subprocess.Popen(  # noqa: S603  (our own command lines)
                part.command, stdin=subprocess.DEVNULL, stdout=log, stderr=log, start_new_session=True, pass_fds=(self._lock.fileno(),)
            )
        others = [one.process.pid for one in self._parts if one.process is not None and one is not part]
        _tell_holders(self._lock, [os.getpid(), *others, part.process.pid])


@contextmanager
def stoppable() -> Iterator[None]:
    """Ctrl-C, SIGTERM and a closed terminal raise :class:`StopAsked`, once; what follows may take its time."""

    def ask(_number: int, _frame: object) -> None:
        for number in asked:
            signal.signal(number, signal.SIG_IGN)
        raise StopAsked

    asked = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
    former = {number: signal.signal(number, ask) for number in asked}
    try:
        yield
    finally:
        for number, handler in former.items():
            signal.signal(number, handler)


@contextmanager
def only_one(path: Path) -> Iterator[IO[str]]:
    """Hold the lock file ``path``, which names the process that holds it. :raises AlreadyRunning: when it is held, by a supervisor or a
    process that one left behind."""
    with path.open("a+") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError as error:
            lock.seek(0)
            holders = lock.read().strip() or "unknown"
            raise AlreadyRunning(
                f"A portal already runs from this folder (processes {holders}). Stop it first. "
                f"If it was killed, end what it left: kill {holders}"
            ) from error
        _tell_holders(lock, [os.getpid()])
        yield lock


def _tell_holders(lock: IO[str], pids: Sequence[int]) -> None:
    lock.seek(0)
    lock.truncate()
    lock.write(" ".join(str(pid) for pid in pids) + "\n")
    lock.flush()


def _code(part: Part) -> int | None:
    return None if part.process is None else part.process.poll()


def _signal(part: Part, number: signal.Signals) -> None:
    """To the process and, for a kill, to everything that it started (they share its session's group)."""
    if part.process is None:
        return
    send = os.killpg if number is signal.SIGKILL else os.kill
    with contextlib.suppress(ProcessLookupError):
        send(part.process.pid, number)


def _tail(part: Part) -> str:
    lines = part.log.read_text(errors="replace").splitlines()[-_TAIL_LINES:]
    return "\n".join(f"  {part.name} | {line}" for line in lines)
